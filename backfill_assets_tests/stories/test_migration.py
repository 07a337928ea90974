"""The story of a migration on PostgreSQL, with the real webserver, daemon and queue: the demo's, in a server."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from rich.console import Console

from backfill_assets.demo import cutover_demo
from backfill_assets.demo.place import Place, prepared
from backfill_assets_tests.warehouses import Warehouse

pytestmark = pytest.mark.slow


@pytest.mark.only("postgres", why="`make demo-cutover` is the same on DuckDB")
def test_three_faults_are_found_mended_and_the_readers_moved_over_and_back(
    warehouse: Warehouse, tmp_path: Path
) -> None:
    said = io.StringIO()
    place = Place(
        prepared(tmp_path).folder,
        settings={"BACKFILL_WAREHOUSE_URL": warehouse.url},
        daemon=Path(__file__).with_name("quick_daemon.py"),
        at=warehouse.url,
    )
    right = cutover_demo.run(place, Console(file=said, width=150))
    assert right, said.getvalue()
    rows = "SELECT count(*), sum(amount) FROM analytics."
    assert warehouse.rows(f"{rows}orders") == warehouse.rows(f"{rows}fct_orders_new")
    moves = warehouse.rows("SELECT state FROM backfill.migration_moves ORDER BY number")
    assert [state for (state,) in moves] == [
        "cutting_over", "cut_over", "rolling_back", "dual_writing", "cutting_over", "cut_over",
    ]  # fmt: skip
