"""Runs all benchmarks, prints the ratios and writes docs/benchmarks.md."""

from __future__ import annotations

import os
import platform
import tempfile
from collections.abc import Iterator
from datetime import datetime, timezone
from importlib.metadata import version
from pathlib import Path

from backfill_assets_tests.bench import (
    checks,
    dbt_models,
    duckdb_write,
    importing,
    io_manager,
    postgres_write,
    reconcile,
    replay,
)
from backfill_assets_tests.bench.timing import Ratio

PAGE = Path(__file__).parents[2] / "docs" / "benchmarks.md"
HEAD = """# Benchmarks

`make bench` wrote this page on {when}: {machine}.
Ours and the reference ran in turn (A B A B ...) in one process; a time is a median, the ratio is the median of
the ratios pair by pair. Machines differ and are noisy: only the ratios mean anything.
A slice is 20,000 rows of five columns.

| what | ours, ms | reference, ms | ratio | wanted | |
|---|---:|---:|---:|---:|---|
"""
WHY = """
## Where the time goes

Through `dg.materialize` more than a third of either side's time is Dagster's, and part of the rest is the asset's own
frame. What is left pays, on DuckDB, for one thing more than anything: bringing what changed into the file, alike for both
sides. We spend about as much again on what the stock manager does not do: the turn at the file, the fit of the columns,
two scans for the hashes, the question whether anybody read later, the audit row and its reading back. A range in one run
brings everything into the file once.

A checkpoint of DuckDB writes the list of a table's row groups, so a longer table costs more whatever writes to it: the
line "the bare transaction likewise" is a plain DELETE and INSERT.

On PostgreSQL the order is: COPY into the stage and the INSERT from it (both sides alike), then reading the slice back to
compare its hash.
"""


def measured(folder: Path) -> Iterator[Ratio]:
    modules = (
        duckdb_write, io_manager, postgres_write, checks, importing, dbt_models, replay, reconcile,
    )  # fmt: skip
    for module in modules:
        for ratio in module.measure(folder):
            print(f"{ratio.ratio:6.2f} (wanted {ratio.wanted or '-'})  {ratio.what}", flush=True)
            yield ratio


def machine() -> str:
    cpu = next(
        (
            line.split(":")[1].strip()
            for line in _lines("/proc/cpuinfo")
            if line.startswith("model name")
        ),
        platform.machine(),
    )
    packages = ", ".join(
        f"{name} {version(name)}" for name in ("dagster", "duckdb", "pandas", "psycopg")
    )
    return f"{os.cpu_count()} cores of {cpu}, Python {platform.python_version()}, {packages}"


def _lines(path: str) -> list[str]:
    return Path(path).read_text().splitlines() if Path(path).exists() else []


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        found = list(measured(folder))
        peaks = io_manager.memory(folder)
    page = HEAD.format(when=f"{datetime.now(timezone.utc):%Y-%m-%d}", machine=machine())
    for ratio in found:
        wanted = "" if ratio.wanted is None else f"{ratio.wanted:.2f}"
        page += (
            f"| {ratio.what} | {ratio.ours_ms:.1f} | {ratio.reference_ms:.1f} | {ratio.ratio:.2f}"
            f" | {wanted} | {ratio.verdict} |\n"
        )
    memory = ", ".join(f"{mib:.0f} MiB over {days} days" for days, mib in peaks.items())
    page += f"\nPeak memory of a process that writes a range day by day (`PerSlice`): {memory}.\n"
    PAGE.write_text(page + WHY)
    print(f"Peak memory: {memory}.\nWritten to docs/{PAGE.name}.")


if __name__ == "__main__":
    main()
