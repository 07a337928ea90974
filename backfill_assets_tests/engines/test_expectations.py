"""What a table expects of a slice, compared before the old rows go: counts, totals, twins, rules of its own."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from backfill_assets.errors import BackfillError, BadRows, DeclarationError, NotAsExpected
from backfill_assets.expectations import NoRows, RowCount, Source, Totals
from backfill_assets.table import SliceColumn, Table
from backfill_assets.window import Window
from backfill_assets_tests.warehouses import AUDIT, Warehouse, at

DAY, NEXT = "2026-05-12", "2026-05-13"
SOURCE = Source("SELECT day, id, amount FROM staging.orders WHERE good", on="day")
ORDERS = Table("mart.orders", SliceColumn("day", "date"), unique_key=("id",), source=SOURCE)


@pytest.fixture
def stocked(warehouse: Warehouse) -> Warehouse:
    """A source of 200 good rows and 10 bad ones on each of two days, each worth 1.50."""
    warehouse.execute(
        "CREATE SCHEMA staging",
        "CREATE TABLE staging.orders (day DATE, id BIGINT, amount DECIMAL(12,2), good BOOLEAN)",
        *(
            f"INSERT INTO staging.orders SELECT DATE '{day}', n, 1.50, n < 200"
            f" FROM generate_series(0, 209) AS s(n)"
            for day in (DAY, NEXT)
        ),
    )
    return warehouse


def rows(count: int, day: str = DAY, amount: str = "1.50", **more: Any) -> pa.Table:
    return pa.table(
        {
            "day": [date.fromisoformat(day)] * count,
            "id": pa.array(range(count), pa.int64()),
            "amount": pa.array([Decimal(amount)] * count, pa.decimal128(12, 2)),
            **more,
        }
    )


def expecting(*rules: Any, **more: Any) -> Table:
    return replace(ORDERS, expects=rules, **more)


def refused(warehouse: Warehouse) -> list[tuple[str, int, int, dict[str, Any]]]:
    found = warehouse.rows(
        "SELECT outcome, rows_before, rows_after, detail FROM backfill.load_audit"
        " WHERE outcome <> 'committed' ORDER BY committed_at"
    )
    return [
        (outcome, before, after, json.loads(detail)) for outcome, before, after, detail in found
    ]


# row counts


@pytest.mark.parametrize(
    ("rule", "passes", "fails", "sentence"),
    [
        (RowCount(), 198, 197, "rows 197, and the source has 200"),
        (RowCount(), 202, 203, "rows 203, and the source has 200"),
        (RowCount(tolerance=0), 200, 199, "rows 199, and the source has 200"),
        (RowCount(tolerance=0, absolute=10), 190, 189, "beyond 0 of it and 10"),
        (RowCount(against=150, tolerance=0), 150, 151, "its declaration has 150"),
        (
            RowCount(against=Source("staging.orders", on="day"), tolerance=0),
            210,
            209,
            "staging.orders has 210",
        ),
        (
            RowCount(
                against="SELECT count(*) FROM staging.orders WHERE day >= {start} AND day < {end} AND good",
                tolerance=0,
            ),
            200,
            201,
            "its query has 200",
        ),
    ],
)
def test_a_row_count_beyond_its_tolerance_keeps_the_old_rows(
    stocked: Warehouse, rule: RowCount, passes: int, fails: int, sentence: str
) -> None:
    table = expecting(rule)
    assert stocked.write(table, DAY, rows(passes)).rows_after == passes
    with pytest.raises(NotAsExpected, match=sentence):
        stocked.write(table, DAY, rows(fails))
    assert stocked.count("mart.orders") == passes


def test_the_last_load_of_the_same_slice_is_what_the_next_one_is_compared_with(
    stocked: Warehouse,
) -> None:
    table = expecting(RowCount(against="last_load", tolerance=0.1))
    stocked.write(table, NEXT, rows(1000, NEXT))  # another day, which is none of its business
    first = stocked.write(table, DAY, rows(100))
    assert first.findings[0]["expected"] is None, "there is nothing yet to compare with"
    stocked.write(table, DAY, rows(91))
    with pytest.raises(NotAsExpected, match="rows 81, and the last load has 91"):
        stocked.write(table, DAY, rows(81))
    # a refused attempt is no load
    assert stocked.write(table, DAY, rows(90)).rows_after == 90


def test_the_last_load_of_a_day_says_nothing_once_its_week_was_loaded_over_it(
    stocked: Warehouse,
) -> None:
    table = expecting(RowCount(against="last_load", tolerance=0))
    stocked.write(table, DAY, rows(5))
    week = Window(at("2026-05-11 00:00"), at("2026-05-18 00:00"))
    stocked.write(expecting(), week, pa.concat_tables([rows(9), rows(9, NEXT).slice(0, 0)]))
    load = stocked.write(table, DAY, rows(9))
    assert (load.rows_before, load.rows_after) == (9, 9)
    assert load.findings[0]["expected"] is None


def test_a_slice_of_a_region_is_compared_with_that_region_of_the_source(
    warehouse: Warehouse,
) -> None:
    warehouse.execute(
        "CREATE TABLE src (day DATE, region TEXT)",
        f"INSERT INTO src SELECT DATE '{DAY}', 'eu' FROM generate_series(1, 5)",
        f"INSERT INTO src SELECT DATE '{DAY}', 'us' FROM generate_series(1, 7)",
    )
    table = Table(
        "sales",
        SliceColumn("day", "date"),
        dimensions=("region",),
        source=Source("src", on="day"),
        expects=(RowCount(tolerance=0),),
    )
    eu = pa.table({"day": [date(2026, 5, 12)] * 5, "region": ["eu"] * 5})
    assert warehouse.write(table, DAY, eu, fixed={"region": "eu"}).rows_after == 5
    us = pa.table({"day": [date(2026, 5, 12)] * 5, "region": ["us"] * 5})
    with pytest.raises(NotAsExpected, match="rows 5, and the source has 7"):
        warehouse.write(table, DAY, us, fixed={"region": "us"})


def test_the_source_is_cut_in_its_own_kind_and_zone(warehouse: Warehouse) -> None:
    warehouse.execute(
        f"CREATE TABLE src ({warehouse.quoted('at')} TIMESTAMP)",  # the wall clock of Tokyo
        *(
            f"INSERT INTO src VALUES (TIMESTAMP '{at}')"
            for at in ("2026-05-12 00:00:00", "2026-05-12 23:59:59.999999", "2026-05-13 00:00:00")
        ),
    )
    table = Table(
        "sales",
        SliceColumn("at", zone="Asia/Tokyo"),
        source=Source("src", on="at", on_zone="Asia/Tokyo"),
        expects=(RowCount(tolerance=0),),
    )
    noon = datetime(2026, 5, 12, 3, tzinfo=timezone.utc)
    two = pa.table({"at": pa.array([noon, noon + timedelta(hours=1)], pa.timestamp("us", "UTC"))})
    assert warehouse.write(table, DAY, two).rows_after == 2


# totals


@pytest.mark.but("snowflake", "bigquery", why="fakesnow sums decimals as floats")
def test_a_total_that_differs_is_refused_though_every_row_is_there(stocked: Warehouse) -> None:
    table = expecting(RowCount(tolerance=0), Totals(("amount",), tolerance=0))
    assert stocked.write(table, DAY, rows(200)).rows_after == 200
    with pytest.raises(
        NotAsExpected, match=r"totals: amount 302\.000*, and the source has 300\.000*,"
    ):
        stocked.write(table, DAY, rows(200, amount="1.51"))
    assert stocked.rows("SELECT sum(amount) FROM mart.orders") == [(Decimal("300.00"),)]


@pytest.mark.parametrize(
    ("theirs", "ours", "agree"),
    [
        ("'NaN'", [float("nan")], True),
        ("'NaN'", [1.0], False),
        ("1.0", [float("nan")], False),
        ("'Infinity'", [float("inf")], True),
        ("'Infinity'", [1.0], False),
        ("0.3", [0.1, 0.2], True),
        ("-0.0", [0.0], True),
        ("NULL", [None], True),
        ("NULL", [0.5], False),
    ],
)
def test_totals_of_floats_know_what_is_no_number_and_what_is_only_noise(
    warehouse: Warehouse, theirs: str, ours: list[float | None], agree: bool
) -> None:
    if not warehouse.keeps_nan and ("'" in theirs or any(x is not None and x != x for x in ours)):
        pytest.skip("this engine has no such number")
    warehouse.execute(
        "CREATE TABLE src (day DATE, x DOUBLE PRECISION)",
        f"INSERT INTO src VALUES (DATE '{DAY}', {theirs})",
    )
    table = Table(
        "t",
        SliceColumn("day", "date"),
        source=Source("src", on="day"),
        expects=(Totals(("x",), tolerance=0),),
    )
    data = pa.table({"day": [date(2026, 5, 12)] * len(ours), "x": pa.array(ours, pa.float64())})
    if agree:
        assert warehouse.write(table, DAY, data).rows_after == len(ours)
    else:
        with pytest.raises(NotAsExpected, match="totals: x"):
            warehouse.write(table, DAY, data)


def test_a_ledger_of_floats_that_sums_to_nothing_is_no_difference(warehouse: Warehouse) -> None:
    warehouse.execute("CREATE TABLE src (day DATE, x DOUBLE PRECISION)")
    ledger = [0.1, 0.2, 0.3, -0.6]
    for value in ledger:
        warehouse.execute(f"INSERT INTO src VALUES (DATE '{DAY}', {value})")
    table = Table(
        "t", SliceColumn("day", "date"), source=Source("src", on="day"), expects=(Totals(("x",)),)
    )
    data = {"day": [date(2026, 5, 12)] * 4, "x": sorted(ledger, reverse=True)}
    assert warehouse.write(table, DAY, data).rows_after == 4


@pytest.mark.but("snowflake", "bigquery", why="fakesnow sums decimals as floats")
def test_large_decimals_are_compared_to_the_last_place(warehouse: Warehouse) -> None:
    warehouse.execute(
        "CREATE TABLE src (day DATE, x DECIMAL(38,9))",
        f"INSERT INTO src VALUES (DATE '{DAY}', 12345678901234567890.000000001)",
    )
    table = Table(
        "t",
        SliceColumn("day", "date"),
        source=Source("src", on="day"),
        expects=(Totals(("x",), tolerance=0),),
    )

    def data(text: str) -> pa.Table:
        return pa.table(
            {"day": [date(2026, 5, 12)], "x": pa.array([Decimal(text)], pa.decimal128(38, 9))}
        )

    with pytest.raises(NotAsExpected, match="totals: x"):
        warehouse.write(table, DAY, data("12345678901234567890.000000002"))
    assert warehouse.write(table, DAY, data("12345678901234567890.000000001")).rows_after == 1


# rules of one's own, and twins


def test_a_rule_of_ones_own_sees_the_new_rows_of_its_slice_and_no_others(
    stocked: Warehouse,
) -> None:
    free = expecting()
    stocked.write(free, NEXT, rows(3, NEXT, "-5.00"))  # an old sin of another day
    table = expecting(NoRows("no_negative_amounts", "SELECT * FROM slice_rows WHERE amount < 0;"))
    assert stocked.write(table, DAY, rows(5)).rows_after == 5
    with pytest.raises(NotAsExpected, match="no_negative_amounts: 4 rows break the rule") as told:
        stocked.write(table, DAY, rows(4, amount="-1.00"))
    assert "allow=rule:no_negative_amounts" in str(told.value)
    again = {"allows": frozenset({"rule:no_negative_amounts"}), "reason": "refunds of the fair"}
    load = stocked.write(table, DAY, rows(4, amount="-1.00"), **again)
    assert load.rows_after == 4
    assert [f["passed"] for f in load.findings] == [False]
    assert json.loads(load.detail or "")["allowed"] == ["rule:no_negative_amounts"]


def test_twins_stop_a_slice_unless_the_table_only_warns_or_the_run_says_why(
    stocked: Warehouse,
) -> None:
    twins = pa.concat_tables([rows(3), rows(1)])
    with pytest.raises(BadRows, match="1 values of the unique key"):
        stocked.write(expecting(), DAY, twins)
    warned = stocked.write(expecting(duplicate_keys="warn"), DAY, twins)
    assert (warned.rows_after, warned.findings[0]["rule"]) == (4, "duplicate_keys")
    allowed = {"allows": frozenset({"duplicate_keys"}), "reason": "the source numbers anew"}
    assert stocked.write(expecting(), DAY, twins, **allowed).findings[0]["found"] == 1


# warnings, overrides, errors


def test_a_warning_is_kept_with_the_load_and_stops_nothing(stocked: Warehouse) -> None:
    load = stocked.write(expecting(RowCount(severity="warn")), DAY, rows(5))
    assert load.rows_after == 5
    (finding,) = load.findings
    assert (finding["passed"], finding["expected"], finding["found"]) == (False, 200, 5)


def test_a_run_may_pass_a_rule_with_a_reason_that_stays_in_the_audit(stocked: Warehouse) -> None:
    table = expecting(RowCount(), Totals(("amount",)))
    with pytest.raises(NotAsExpected, match="allow=row_count,totals and"):
        stocked.write(table, DAY, rows(5))
    with pytest.raises(NotAsExpected, match="allow=totals and"):
        stocked.write(table, DAY, rows(5), allows=frozenset({"row_count"}), reason="half of it")
    with pytest.raises(DeclarationError, match="gives no reason"):
        stocked.write(table, DAY, rows(5), allows=frozenset({"row_count", "totals"}))
    load = stocked.write(
        table, DAY, rows(5), allows=frozenset({"row_count", "totals"}), reason="only shop 5"
    )
    assert (load.rows_after, load.reason) == (5, "only shop 5")
    assert json.loads(load.detail or "")["allowed"] == ["row_count", "totals"]


@pytest.mark.parametrize(
    ("rule", "sentence"),
    [
        (RowCount(against=Source("staging.nowhere", on="day")), "(?i)nowhere"),
        (RowCount(against=Source("staging.orders", on="dya")), "no column 'dya'"),
        (RowCount(against=Source("staging.orders", on="id")), "holds"),
        (RowCount(against="SELECT 'many'"), "which is no number"),
        (RowCount(against="SELECT 1 WHERE 1 = 0"), "did not give one number"),
        (RowCount(against="SELECT nonsense FROM"), "could not be asked"),
        (Totals(("cost",)), "cost"),
        (NoRows("odd", "SELECT colour FROM slice_rows"), "could not be asked"),
    ],
)
def test_a_rule_that_cannot_be_asked_has_not_passed(
    stocked: Warehouse, rule: Any, sentence: str
) -> None:
    stocked.write(expecting(), DAY, rows(7))
    with pytest.raises(BackfillError, match=sentence):
        stocked.write(expecting(rule), DAY, rows(200))
    assert stocked.count("mart.orders") == 7


def test_a_warning_that_cannot_be_asked_warns(stocked: Warehouse) -> None:
    rule = RowCount(against=Source("staging.nowhere", on="day"), severity="warn")
    load = stocked.write(expecting(rule), DAY, rows(7))
    assert load.rows_after == 7
    assert not load.findings[0]["passed"]
    assert "nowhere" in load.findings[0]["why"].lower()


# the audit of what was not done


def test_a_refused_attempt_has_an_audit_row_of_its_own_and_the_slice_its_old_rows(
    stocked: Warehouse,
) -> None:
    table = expecting(RowCount())
    stocked.write(table, DAY, rows(200))
    with pytest.raises(NotAsExpected):
        stocked.write(table, DAY, rows(100), reason="a new rule", run_id="the-run")
    ((outcome, before, after, detail),) = refused(stocked)
    assert (outcome, before, after) == ("refused", 200, 200)
    assert detail["error"] == "NotAsExpected"
    assert "rows 100, and the source has 200" in detail["why"]
    found = stocked.rows(
        "SELECT reason, run_id, checksum, source_read_at <= committed_at, seconds >= 0"
        " FROM backfill.load_audit WHERE outcome = 'refused'"
    )
    assert found == [("a new rule", "the-run", "", True, True)]


def test_the_first_attempt_at_a_table_that_is_not_there_is_audited_too(stocked: Warehouse) -> None:
    with pytest.raises(NotAsExpected):
        stocked.write(expecting(RowCount()), DAY, rows(1))
    assert [row[:3] for row in refused(stocked)] == [("refused", 0, 0)]


def test_refused_attempts_cost_their_time_and_no_rows(stocked: Warehouse) -> None:
    table = expecting(RowCount())
    stocked.write(table, DAY, rows(200), backfill_id="b")
    with stocked.session() as session:
        before = AUDIT.spent(session, backfills=["b"])
    with pytest.raises(NotAsExpected):
        stocked.write(table, DAY, rows(100), backfill_id="b")
    with stocked.session() as session:
        after = AUDIT.spent(session, backfills=["b"])
    assert (before.rows, after.rows) == (200, 200)
    assert after.seconds > before.seconds


def test_a_refused_attempt_is_no_load_to_a_later_run(stocked: Warehouse) -> None:
    table = expecting(RowCount())
    with pytest.raises(NotAsExpected):
        stocked.write(table, DAY, rows(100))
    with stocked.session() as session:
        assert AUDIT.newest(session, table, None) == []
        assert AUDIT.usual(session, table, 5) == (None, [])
