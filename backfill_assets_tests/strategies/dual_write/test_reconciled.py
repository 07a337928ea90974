"""The reconciliation as an asset: each day has its rows, its metadata and its checks, whatever run compared it."""

from __future__ import annotations

from datetime import date, datetime, timedelta, timezone
from typing import Any

import dagster as dg
import pytest

from backfill_assets.errors import DeclarationError
from backfill_assets.orders import assets as orders
from backfill_assets.orders import feed, paths
from backfill_assets.orders.tables import FCT_ORDERS_LEGACY, FCT_ORDERS_NEW, ORDERS_MIGRATION
from backfill_assets.slice import Slice
from backfill_assets.strategies.reconcile.asset import reconciliation_asset, reconciliation_key
from backfill_assets.window import Window
from backfill_assets.writing import AuditTable, Run, rewrite
from backfill_assets_tests.io_managers.conftest import Warehouse, failure_of

KEY = reconciliation_key(ORDERS_MIGRATION)
FIRST, LAST = date(2026, 5, 4), date(2026, 5, 6)
DAILY = (
    "SELECT partition_key, rows_old, rows_new, only_old, only_new, differing, equal, verdict"
    " FROM backfill.reconciliation_daily ORDER BY 1"
)


def written(warehouse: Warehouse, faults: frozenset[str]) -> None:
    """Write three days by both paths, the old one with its faults."""
    import pyarrow as pa

    from backfill_assets.engines import open_engine

    with open_engine(warehouse.url).session() as session:
        for n in range((LAST - FIRST).days + 1):
            day = FIRST + timedelta(days=n)
            for table in (FCT_ORDERS_LEGACY, FCT_ORDERS_NEW):
                slice_ = Slice(table, Window.day(day), partition=day.isoformat())
                of = feed.read(slice_)
                made = paths.new(slice_, of) if table is FCT_ORDERS_NEW else paths.legacy(slice_, of, faults)  # fmt: skip
                run = Run("a job", reason="a test", code_version="1")
                rewrite(session, slice_, pa.Table.from_pandas(made, preserve_index=False), run, AuditTable())  # fmt: skip


def compared(warehouse: Warehouse, **options: Any) -> Any:
    return warehouse.run_range(
        FIRST.isoformat(), LAST.isoformat(), orders.reconciliation, orders.checks, **options
    )


def checks_of(warehouse: Warehouse, name: str) -> dict[str, tuple[bool, str, str]]:
    """Return the newest result of each partition: whether it passed, how bad it is, and what it says."""
    found: dict[str, Any] = {}
    history = warehouse.instance.event_log_storage.get_asset_check_execution_history(dg.AssetCheckKey(KEY, name), 1000)  # fmt: skip
    for record in history:
        event = record.event
        evaluation = event.dagster_event.asset_check_evaluation_data if event and event.dagster_event else None  # fmt: skip
        if evaluation is not None and evaluation.partition is not None:
            found.setdefault(
                evaluation.partition,
                (evaluation.passed, evaluation.severity.value, str(evaluation.description)),
            )
    return found


def expected(fault: str) -> dict[str, tuple[int, int, int]]:
    """Return by a plain loop of its own how many rows of each day are only old, only new, or differ."""
    found = {}
    for n in range((LAST - FIRST).days + 1):
        day = FIRST + timedelta(days=n)
        slice_ = Slice(FCT_ORDERS_NEW, Window.day(day), partition=day.isoformat())
        sides = [
            {row.order_id: tuple(row)[1:] for row in made.itertuples()}
            for made in (
                paths.legacy(slice_, feed.read(slice_), frozenset({fault})),
                paths.new(slice_, feed.read(slice_)),
            )
        ]
        old, new = sides
        both = old.keys() & new.keys()
        found[day.isoformat()] = (
            len(old.keys() - both),
            len(new.keys() - both),
            sum(repr(old[id_]) != repr(new[id_]) for id_ in both),
        )
    return found


@pytest.mark.parametrize("fault", sorted(paths.FAULTS))
def test_each_fault_of_the_old_job_is_found_on_its_days_to_the_row(
    warehouse: Warehouse, fault: str
) -> None:
    written(warehouse, frozenset({fault}))
    compared(warehouse)
    rows = warehouse.rows(DAILY)
    assert {row[0]: tuple(row[3:6]) for row in rows} == expected(fault)
    for _, old, new, only_old, only_new, differing, equal, verdict in rows:
        assert old == equal + differing + only_old
        assert new == equal + differing + only_new
        assert verdict == "differs"
    kinds = {"rounding": {"differs"}, "nulls": {"only_new"}, "zone": {"only_old", "only_new"}}
    found = warehouse.rows("SELECT DISTINCT kind FROM backfill.reconciliation_keys")
    assert {kind for (kind,) in found} == kinds[fault]
    columns = {columns for (columns,) in warehouse.rows("SELECT columns FROM backfill.reconciliation_daily")}  # fmt: skip
    assert all(("amount" in one) is (fault == "rounding") for one in columns)


def test_each_day_of_a_run_has_metadata_and_checks_of_its_own(warehouse: Warehouse) -> None:
    written(warehouse, frozenset({"rounding"}))
    result = compared(warehouse)
    events = [e.event_specific_data.materialization for e in result.get_asset_materialization_events()]  # fmt: skip
    told = {event.partition: event.metadata for event in events}
    assert set(told) == {"2026-05-04", "2026-05-05", "2026-05-06"}
    for day, (_, _, differing) in expected("rounding").items():
        assert told[day]["differing"].value == differing
        assert told[day]["differing_by_column"].value == {"amount": differing}
        assert told[day]["amount_difference"].value != 0
        first = told[day]["worst_keys"].records[0]
        assert first.data["column"] == "amount"
    assert "2026-05-06" in str(told["2026-05-06"]["daily_difference"].value)
    passed = {day: found[:2] for day, found in checks_of(warehouse, "within_threshold").items()}
    assert passed == dict.fromkeys(told, (False, "ERROR"))
    passed = {day: found[:2] for day, found in checks_of(warehouse, "totals_match").items()}
    assert passed == dict.fromkeys(told, (False, "WARN"))


def test_days_that_are_compared_again_after_the_fault_is_mended_are_green(
    warehouse: Warehouse,
) -> None:
    written(warehouse, paths.FAULTS)
    compared(warehouse)
    warehouse.run_range(FIRST.isoformat(), LAST.isoformat(), *orders.orders_pair, tags={"reason": "mended"})  # fmt: skip
    compared(warehouse)
    assert [(row[3:6], row[7]) for row in warehouse.rows(DAILY)] == [((0, 0, 0), "equal")] * 3
    assert warehouse.rows("SELECT count(*) FROM backfill.reconciliation_keys") == [(0,)]
    for name in ("within_threshold", "keys_match", "totals_match"):
        assert {found[0] for found in checks_of(warehouse, name).values()} == {True}


def test_one_day_is_compared_by_itself(warehouse: Warehouse) -> None:
    written(warehouse, frozenset())
    warehouse.run(orders.reconciliation, orders.checks, partition_key="2026-05-05")
    assert [row[0] for row in warehouse.rows(DAILY)] == ["2026-05-05"]


def test_a_table_that_is_not_there_is_told_in_one_sentence_and_nothing_is_kept(
    warehouse: Warehouse,
) -> None:
    failed = warehouse.run(orders.reconciliation, partition_key="2026-05-05", ok=False)
    assert "there is no analytics.fct_orders_legacy" in failure_of(failed)
    assert warehouse.rows("SELECT count(*) FROM backfill.reconciliation_daily") == [(0,)]


def test_the_night_compares_the_last_fortnight_that_is_due() -> None:
    at = datetime(2026, 6, 20, 6, tzinfo=timezone.utc)
    with dg.instance_for_test() as instance:
        context = dg.build_schedule_context(instance, scheduled_execution_time=at)
        asked: Any = orders.nightly.evaluate_tick(context).run_requests
    assert [request.tags["dagster/asset_partition_range_start"] for request in asked] == ["2026-06-06"]  # fmt: skip
    assert [request.tags["dagster/asset_partition_range_end"] for request in asked] == ["2026-06-19"]  # fmt: skip


@pytest.mark.parametrize(
    ("now", "first"), [("2026-05-05 06:00", "2026-05-01"), ("2026-05-02 06:00", "2026-05-01")]
)
def test_the_first_nights_of_a_migration_compare_what_there_is(now: str, first: str) -> None:
    at = datetime.fromisoformat(now).replace(tzinfo=timezone.utc)
    with dg.instance_for_test() as instance:
        context = dg.build_schedule_context(instance, scheduled_execution_time=at)
        (asked,) = orders.nightly.evaluate_tick(context).run_requests  # type: ignore[misc]
        assert asked.tags["dagster/asset_partition_range_start"] == first
        early = dg.build_schedule_context(instance, scheduled_execution_time=at - timedelta(days=9))
        assert not orders.nightly.evaluate_tick(early).run_requests


def test_partitions_that_are_not_the_days_of_the_new_table_are_refused() -> None:
    for wrong in (
        dg.DailyPartitionsDefinition("2026-05-01", timezone="Europe/Berlin"),
        dg.DailyPartitionsDefinition("2026-05-01", hour_offset=3),
        dg.WeeklyPartitionsDefinition("2026-05-01"),
    ):
        with pytest.raises(DeclarationError, match="cannot be reconciled by these partitions"):
            reconciliation_asset(ORDERS_MIGRATION, partitions_def=wrong)
