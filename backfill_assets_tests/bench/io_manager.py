"""The IO manager against the stock one, through `dg.materialize`, and its memory over longer ranges."""

import functools
import logging
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import dagster as dg
import pandas as pd
from dagster_duckdb_pandas import DuckDBPandasIOManager

from backfill_assets.io_managers import DeleteInsertIOManager, PerSlice
from backfill_assets.quiet import quiet_known_warnings
from backfill_assets_tests.bench.rows import FIRST, day_of, rows_of
from backfill_assets_tests.bench.timing import Ratio, compare_apart

quiet_known_warnings()
DAYS = dg.DailyPartitionsDefinition(FIRST.isoformat())
OPTIONS = {
    "partitions_def": DAYS,
    "key_prefix": ["analytics"],
    "metadata": {"partition_expr": "sale_date", "partition_kind": "date"},
    "backfill_policy": dg.BackfillPolicy.single_run(),
}
MONTH = {
    "dagster/asset_partition_range_start": FIRST.isoformat(),
    "dagster/asset_partition_range_end": day_of(29).isoformat(),
}
FRAMES: dict[str, pd.DataFrame] = {}


def frame(key: str) -> pd.DataFrame:
    if key not in FRAMES:
        FRAMES[key] = rows_of((pd.Timestamp(key).date() - FIRST).days).to_pandas()
    return FRAMES[key]


@dg.asset(**OPTIONS)
def one_day(context: dg.AssetExecutionContext) -> pd.DataFrame:
    return frame(context.partition_key)


@dg.asset(**OPTIONS)
def many_days() -> PerSlice:
    return PerSlice(lambda slice_: frame(slice_.partition))


@dg.asset(**OPTIONS)
def one_frame(context: dg.AssetExecutionContext) -> pd.DataFrame:
    return month()


@functools.cache
def month() -> pd.DataFrame:
    return pd.concat([frame(day_of(n).isoformat()) for n in range(30)])


@dg.asset(**OPTIONS)
def fresh_days() -> PerSlice:
    return PerSlice(lambda slice_: rows_of((slice_.window.start.date() - FIRST).days))


def measure(folder: Path) -> Iterator[Ratio]:
    """Yield the ratios: one partition a run, and thirty in one run against the stock manager's thirty runs."""
    yield compare_apart(
        "IO manager, one partition a run, against the stock manager",
        our_day,
        stock_day,
        str(folder),
        wanted=0.8,
        pairs=40,
    )
    for month_, returns in ((our_days, "a function of the day"), (our_frame, "one frame")):
        yield compare_apart(
            f"a day of a 30-day run, the asset returning {returns}, against the stock manager's run of one day",
            month_,
            stock_day,
            str(folder),
            wanted=1 / 3,
            pairs=10,
            ours_per=30,
        )


def our_day(folder: str) -> Callable[[], object]:
    return _run(one_day, _ours(folder), partition_key="2026-05-03")


def stock_day(folder: str) -> Callable[[], object]:
    stock = DuckDBPandasIOManager(database=f"{folder}/io_stock.duckdb")
    return _run(one_day, stock, partition_key="2026-05-03")


def our_days(folder: str) -> Callable[[], object]:
    return _run(many_days, _ours(folder), tags=MONTH)


def our_frame(folder: str) -> Callable[[], object]:
    return _run(one_frame, _ours(folder), tags=MONTH)


def _ours(folder: str) -> DeleteInsertIOManager:
    return DeleteInsertIOManager(url=f"duckdb:///{folder}/io_ours.duckdb")


def _run(asset: dg.AssetsDefinition, manager: object, **options: Any) -> Callable[[], object]:
    instance = dg.DagsterInstance.ephemeral()
    return lambda: dg.materialize(
        [asset], resources={"io_manager": manager}, instance=instance, **options
    )


def memory(folder: Path) -> dict[int, float]:
    """Return the peak memory in MiB of a fresh process that writes a range of so many days."""
    peaks = {}
    for days in (30, 240):
        command = [sys.executable, "-m", __name__, str(days), f"{folder}/memory{days}.duckdb"]
        peaks[days] = float(
            subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()[-1]
        )
    return peaks


def _main(days: int, file: str) -> None:
    logging.disable(logging.CRITICAL)
    edges = {
        "dagster/asset_partition_range_start": FIRST.isoformat(),
        "dagster/asset_partition_range_end": day_of(days - 1).isoformat(),
    }
    manager = DeleteInsertIOManager(url=f"duckdb:///{file}")
    dg.materialize([fresh_days], resources={"io_manager": manager}, tags=edges)
    status = Path("/proc/self/status").read_text()  # ru_maxrss would tell the parent's peak too
    print(next(int(line.split()[1]) for line in status.splitlines() if "VmHWM" in line) / 1024)


if __name__ == "__main__":
    _main(int(sys.argv[1]), sys.argv[2])
