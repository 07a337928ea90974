"""What a backfill ends as when days are rightly empty, or when a check finds something wrong."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import dagster as dg
import pytest

from backfill_assets.controls.switch import Switch
from backfill_assets.settings import settings
from backfill_assets_tests.operations import checked_location
from backfill_assets_tests.operations.daemon import Daemon, daemon_for
from backfill_assets_tests.warehouses import Warehouse

SATURDAY, SUNDAY, MONDAY = "2026-05-09", "2026-05-10", "2026-05-11"
WEEKEND = [SATURDAY, SUNDAY, MONDAY]
BOTH = {"sales": WEEKEND, "sums": WEEKEND}


@pytest.fixture(scope="module")
def daemon() -> Iterator[Daemon]:
    with daemon_for(Path(checked_location.__file__)) as running:
        yield running


@pytest.fixture
def warehouse(daemon: Daemon, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Warehouse:
    """A source of two rows for Saturday and Monday, and none for Sunday."""
    warehouse = Warehouse(f"duckdb:///{tmp_path}/warehouse.duckdb")
    monkeypatch.setenv("LATE_TEST_URL", warehouse.url)
    warehouse.execute(
        "CREATE SCHEMA raw",
        "CREATE TABLE raw.sales AS SELECT * FROM (VALUES (DATE '2026-05-09', 1, 5), (DATE '2026-05-09', 2, 5),"
        " (DATE '2026-05-11', 3, 5), (DATE '2026-05-11', 4, 5)) AS s(day, id, amount)",
    )
    return warehouse


@pytest.fixture
def reports(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Path]:
    """The folder of reports for one test."""
    monkeypatch.setenv("BACKFILL_REPORTS", str(tmp_path / "reports"))
    settings.cache_clear()
    yield tmp_path / "reports"
    settings.cache_clear()


def results(daemon: Daemon, asset: str, check: str) -> dict[str, bool]:
    """The newest result of each partition."""
    key = dg.AssetCheckKey(dg.AssetKey(["mart", asset]), check)
    found: dict[str, bool] = {}
    for record in daemon.instance.event_log_storage.get_asset_check_execution_history(key, 200):
        event = record.event.dagster_event if record.event is not None else None
        data = event.event_specific_data if event is not None else None
        if getattr(data, "passed", None) is not None and data.partition is not None:
            found.setdefault(data.partition, data.passed)
    return found


def test_a_backfill_over_a_rightly_empty_day_ends_as_a_success_for_dagster_too(
    daemon: Daemon, warehouse: Warehouse
) -> None:
    backfill = daemon.backfill(BOTH)
    assert daemon.end(backfill) == "COMPLETED_SUCCESS"
    assert {run.status.value for run in daemon.runs(backfill)} == {"SUCCESS"}
    for asset in ("sales", "sums"):
        key = dg.AssetKey(["mart", asset])
        assert set(WEEKEND) <= daemon.instance.get_materialized_partitions(key)
        assert results(daemon, asset, "missing_partitions") == dict.fromkeys(WEEKEND, True)
    assert warehouse.rows("SELECT day, amount FROM mart.sums ORDER BY 1") != []
    loads = warehouse.rows(
        "SELECT partition_key, rows_after FROM backfill.load_audit WHERE table_name = 'mart.sums' ORDER BY 1"
    )
    assert loads == [(SATURDAY, 1), (SUNDAY, 0), (MONDAY, 1)]


def test_an_empty_day_that_nobody_declared_stops_its_backfill_and_keeps_the_days_before(
    daemon: Daemon, warehouse: Warehouse
) -> None:
    warehouse.execute("DELETE FROM raw.sales WHERE day = DATE '2026-05-11'")
    backfill = daemon.backfill(BOTH)
    assert daemon.end(backfill) == "COMPLETED_FAILED"
    outcomes = warehouse.rows(
        "SELECT partition_key, outcome FROM backfill.load_audit WHERE table_name = 'mart.sales' ORDER BY 1"
    )
    assert outcomes == [(SATURDAY, "committed"), (SUNDAY, "committed"), (MONDAY, "refused")]


def test_a_check_that_blocks_pauses_its_backfill_and_reddens_its_report_though_dagster_calls_it_a_success(
    daemon: Daemon, warehouse: Warehouse, reports: Path
) -> None:
    warehouse.execute(
        "CREATE SCHEMA mart", "CREATE TABLE mart.sales (day DATE, id BIGINT, amount DOUBLE)"
    )
    backfill = daemon.backfill({"sales": WEEKEND}, reason="to see it")
    assert daemon.end(backfill) == "COMPLETED_SUCCESS"
    assert {run.status.value for run in daemon.runs(backfill)} == {"FAILURE"}
    assert results(daemon, "sales", "schema") == dict.fromkeys(WEEKEND, False)
    assert results(daemon, "sales", "missing_partitions") == dict.fromkeys(WEEKEND, True)
    (pause,) = [one for one in Switch(daemon.instance).pauses() if one.scope.backfill == backfill]
    assert "schema" in pause.reason or "check" in pause.reason
    daemon.job("report_backfill", backfill=backfill)
    report = (reports / f"{backfill}.md").read_text()
    assert "schema failed" in report
    assert "COMPLETED_SUCCESS" in report
