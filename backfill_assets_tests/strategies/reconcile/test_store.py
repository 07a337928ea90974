"""What is known of each day is kept once, with its keys, however often it is compared."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import pytest

from backfill_assets.errors import MissingRight
from backfill_assets.strategies.dual_write import Migration, Side, Tolerance
from backfill_assets.strategies.reconcile.day import DayCompared, KeyFound, Mark
from backfill_assets.strategies.reconcile.picture import as_svg, as_text, streaks
from backfill_assets.strategies.reconcile.store import ReconciliationStore
from backfill_assets.strategies.reconcile.streak import newest_due, slices_of, streak_of
from backfill_assets.table import SliceColumn, Table
from backfill_assets.window import Window
from backfill_assets.writing import Run, rewrite
from backfill_assets_tests.warehouses import AUDIT, Warehouse

STORE = ReconciliationStore()
DAY = SliceColumn("day", kind="date")
ORDERS = Migration(
    "orders",
    Side(Table("analytics.old_orders", DAY)),
    Side(Table("analytics.new_orders", DAY)),
    key=("id",),
    measures=("amount",),
    quiet_days=3,
    due_hours=0,
)
NOW = datetime(2026, 5, 11, 6, tzinfo=timezone.utc)


def day(name: str, **given: Any) -> DayCompared:
    window = Window.day(name)
    sums = {"amount": Decimal("0.100000000000000000001")}
    return DayCompared(**{
        "migration": "orders",
        "partition_key": name,
        "window_start": window.start,
        "window_end": window.end,
        "old": Mark(3, "12345678901234567890123", sums),
        "new": Mark(3, "12345678901234567890123", sums),
        "only_old": 0,
        "only_new": 0,
        "differing": 0,
        "equal": 3,
        "columns": {},
        "verdict": "equal",
        "fingerprint": ORDERS.fingerprint,
        "run_id": "a run",
        "compared_at": NOW,
        **given,
    })  # fmt: skip


def bad(name: str, **given: Any) -> DayCompared:
    return day(name, differing=1, equal=2, columns={"amount": 1}, verdict="differs", **given)


def key(name: str, id_: str) -> KeyFound:
    return KeyFound("orders", name, "differs", {"id": id_, "shop": None}, {"amount": "1.00"}, {"amount": None}, ("amount",))  # fmt: skip


def keep(warehouse: Warehouse, *found: DayCompared | tuple[DayCompared, list[KeyFound]]) -> None:
    with warehouse.session() as session:
        STORE.ensure(session)
        pairs = [one if isinstance(one, tuple) else (one, []) for one in found]
        STORE.replace(session, pairs, "a run")


def streak(warehouse: Warehouse, now: datetime = NOW, migration: Migration = ORDERS) -> Any:
    with warehouse.session() as session:
        return streak_of(session, migration, AUDIT, now)


def test_a_day_comes_back_as_it_was_kept_its_sums_to_the_last_digit(warehouse: Warehouse) -> None:
    keep(warehouse, (bad("2026-05-09"), [key("2026-05-09", "1"), key("2026-05-09", "2'\"{}")]), day("2026-05-10"))  # fmt: skip
    with warehouse.session() as session:
        assert STORE.days(session, "orders") == [bad("2026-05-09"), day("2026-05-10")]
        assert STORE.worst_keys(session, "orders", "2026-05-09") == [key("2026-05-09", "1"), key("2026-05-09", "2'\"{}")]  # fmt: skip
        assert STORE.worst_keys(session, "orders", "2026-05-10") == []
        assert STORE.days(session, "orders", Window.day("2026-05-10")) == [day("2026-05-10")]


def test_a_day_that_is_compared_again_is_known_once_and_its_old_keys_are_gone(
    warehouse: Warehouse,
) -> None:
    keep(warehouse, (bad("2026-05-09"), [key("2026-05-09", "1")]), (bad("2026-05-10"), [key("2026-05-10", "7")]))  # fmt: skip
    keep(warehouse, day("2026-05-09"))
    with warehouse.session() as session:
        assert STORE.days(session, "orders") == [day("2026-05-09"), bad("2026-05-10")]
        assert STORE.worst_keys(session, "orders", "2026-05-09") == []
        assert STORE.worst_keys(session, "orders", "2026-05-10") == [key("2026-05-10", "7")]


def test_another_migration_of_the_same_days_is_left_alone(warehouse: Warehouse) -> None:
    keep(warehouse, (bad("2026-05-09", migration="prices"), []))
    keep(warehouse, day("2026-05-09"))
    with warehouse.session() as session:
        assert [d.verdict for d in STORE.days(session, "prices")] == ["differs"]
        assert [d.verdict for d in STORE.days(session, "orders")] == ["equal"]


def test_before_anything_is_compared_nothing_is_known_and_nothing_is_made(
    warehouse: Warehouse,
) -> None:
    found = streak(warehouse)
    assert (found.days, found.why) == (
        0,
        "0 quiet days in a row of 3 that are needed: 2026-05-10 has not been compared",
    )
    with warehouse.session(read_only=not warehouse.url.startswith("duckdb")) as session:
        assert not STORE.is_there(session)


@pytest.mark.only("postgres", why="a role that may not make tables")
def test_a_role_that_may_make_no_tables_is_told_what_somebody_else_should_run(
    warehouse: Warehouse,
) -> None:
    warehouse.execute(
        "CREATE ROLE reader", "CREATE SCHEMA backfill", "GRANT USAGE ON SCHEMA backfill TO reader"
    )
    with warehouse.session() as session:
        session.execute("SET ROLE reader")
        try:
            with pytest.raises(MissingRight, match="CREATE TABLE IF NOT EXISTS"):
                STORE.ensure(session)
        finally:
            session.execute("RESET ROLE")
            session.execute("DROP OWNED BY reader")
            session.execute("DROP ROLE reader")


@pytest.mark.parametrize(
    ("kept", "days", "why"),
    [
        ([day("2026-05-08"), day("2026-05-09"), day("2026-05-10")], 3, None),
        ([day("2026-05-09"), day("2026-05-10")], 2, "2026-05-08 has not been compared"),
        ([day("2026-05-08"), day("2026-05-09")], 0, "2026-05-10 has not been compared"),
        ([day("2026-05-08"), bad("2026-05-09"), day("2026-05-10")], 1, "2026-05-09 differs: 1 row with other values, most of them in amount"),
        ([day("2026-05-08"), day("2026-05-09", fingerprint="another"), day("2026-05-10")], 1, "by another declaration"),
        ([day("2026-05-08"), day("2026-05-09", verdict="within"), day("2026-05-10")], 3, None),
        ([day("2026-05-08"), day("2026-05-09", verdict="missing"), day("2026-05-10")], 1, "2026-05-09 differs"),
    ],
)  # fmt: skip
def test_quiet_days_count_in_a_row_back_from_the_newest_that_is_due(
    duckdb: Warehouse, kept: list[DayCompared], days: int, why: str | None
) -> None:
    keep(duckdb, *kept)
    found = streak(duckdb)
    assert found.days == days
    assert (found.why is None) if why is None else (why in found.why)
    assert [w.label() for w in found.windows] == ["2026-05-10", "2026-05-09", "2026-05-08"][:days]


def test_days_without_rows_on_either_side_prove_nothing_and_end_no_row(duckdb: Warehouse) -> None:
    nothing = {"old": Mark(0, "0", {}), "new": Mark(0, "0", {}), "equal": 0}
    keep(duckdb, *(day(f"2026-05-{n:02}") for n in (6, 7)), day("2026-05-08", **nothing), *(day(f"2026-05-{n:02}") for n in (9, 10)))  # fmt: skip
    found = streak(duckdb)
    assert (found.days, found.why) == (3, None)
    assert [w.label() for w in found.windows] == ["2026-05-10", "2026-05-09", "2026-05-07"]
    keep(duckdb, *(day(f"2026-05-{n:02}", **nothing) for n in (6, 7)))
    assert streak(duckdb).days == 2


def test_a_day_that_was_loaded_again_after_it_was_compared_is_not_quiet_any_more(
    warehouse: Warehouse,
) -> None:
    import pyarrow as pa

    keep(warehouse, *(day(f"2026-05-{n:02}") for n in (8, 9, 10)))
    assert streak(warehouse).days == 3
    (slice_,) = slices_of(ORDERS, [Window.day("2026-05-09")])
    rows = pa.table({"id": [1], "day": [slice_.window.days()[0]]})  # type: ignore[union-attr]
    warehouse.execute("CREATE SCHEMA IF NOT EXISTS analytics")
    with warehouse.session() as session:
        rewrite(session, slice_, rows, Run("the live run"), AUDIT)
    found = streak(warehouse)
    assert found.days == 1
    assert "analytics.new_orders of 2026-05-09 was written by run the live run after it was compared" in found.why  # fmt: skip


@pytest.mark.parametrize(
    ("now", "hours", "zone", "due"),
    [
        ("2026-05-11 00:00", 0, "UTC", "2026-05-10"),
        ("2026-05-10 23:59", 0, "UTC", "2026-05-09"),
        ("2026-05-11 23:59", 24, "UTC", "2026-05-09"),
        ("2026-05-12 00:00", 24, "UTC", "2026-05-10"),
        ("2026-05-11 03:59", 0, "America/New_York", "2026-05-09"),
        ("2026-05-11 04:00", 0, "America/New_York", "2026-05-10"),
        ("2026-11-02 04:59", 0, "America/New_York", "2026-10-31"),
        ("2026-11-02 05:00", 0, "America/New_York", "2026-11-01"),
    ],
)
def test_a_day_is_due_so_many_hours_after_its_end_in_its_own_zone(
    now: str, hours: float, zone: str, due: str
) -> None:
    found = newest_due(zone, datetime.fromisoformat(now).replace(tzinfo=timezone.utc), hours)
    assert found == Window.day(due, zone)


def test_a_verdict_by_other_tolerances_is_another_fingerprint_and_a_longer_streak_is_not() -> None:
    import dataclasses

    assert dataclasses.replace(ORDERS, quiet_days=30).fingerprint == ORDERS.fingerprint
    for changed in (
        {"tolerances": {"amount": Tolerance(absolute=0.01)}},
        {"threshold": 0.01},
        {"ignore": ("loaded_at",)},
        {"key": ("id", "shop")},
        {"new": Side(Table("analytics.other", DAY))},
    ):
        assert dataclasses.replace(ORDERS, **changed).fingerprint != ORDERS.fingerprint


def test_the_picture_shows_each_day_with_its_difference_and_its_streak() -> None:
    days = [day("2026-05-06"), bad("2026-05-07"), day("2026-05-08"), day("2026-05-10")]
    assert streaks(days) == [1, 0, 1, 1]  # the ninth is not there
    shown = list(as_text(days))
    assert shown[1].startswith("2026-05-07  differs         1  █")
    assert shown[1].endswith("not quiet")
    assert "█" not in shown[0]
    svg = "".join(as_svg(days, 3))
    assert svg.count("<rect") == 4
    assert "2026-05-07: differs, 1 rows differ, quiet for 0 days" in svg


def test_a_picture_of_no_days_is_no_error() -> None:
    assert list(as_text([])) == []
    assert "".join(as_svg([], 14)).endswith("</svg>")


def test_yesterday_is_due_today() -> None:
    assert newest_due("UTC", NOW, ORDERS.due_hours) == Window(
        NOW - timedelta(hours=30), NOW - timedelta(hours=6)
    )
