"""What the checks say of slices that are there: years later, of many at once, and of each one alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import date, datetime, timedelta, timezone
from typing import Any
from zoneinfo import ZoneInfo

import pyarrow as pa
import pytest

from backfill_assets.checks.late import late_slices
from backfill_assets.checks.schema import schema_problems
from backfill_assets.checks.verdicts import Verdict, checks_of, verdicts
from backfill_assets.engines import Session
from backfill_assets.expectations import NoRows, RowCount, Source, Totals
from backfill_assets.slice import Slice
from backfill_assets.table import SliceColumn, Table
from backfill_assets.window import Window
from backfill_assets.writing import Select
from backfill_assets_tests.warehouses import AUDIT, Warehouse, at

FIRST = date(2026, 5, 1)
DAYS = [FIRST + timedelta(days=n) for n in range(10)]
NOW = at("2026-06-01 12:00")
SOURCE = Source("src", on="sold_at", ingested_at="came_at")
SALES = Table(
    "sales",
    SliceColumn("day", "date"),
    unique_key=("id",),
    source=SOURCE,
    expects=(RowCount(tolerance=0), Totals(("amount",), tolerance=0)),
)


def slices(table: Table = SALES, days: Sequence[date] = DAYS) -> list[Slice]:
    zone = table.slice_column.zone if table.slice_column else "UTC"
    return [Slice(table, Window.day(day, zone), partition=str(day)) for day in days]


def frame(day: date, ids: Sequence[int], amount: int = 2) -> pa.Table:
    return pa.table({"day": [day] * len(ids), "id": list(ids), "amount": [amount] * len(ids)})


def look(
    warehouse: Warehouse,
    table: Table = SALES,
    days: Sequence[date] = DAYS,
    now: datetime = NOW,
    wanted: Sequence[str] | None = None,
) -> dict[str, dict[str, Verdict]]:
    with warehouse.session(read_only=True) as session:
        found = list(verdicts(session, table, slices(table, days), AUDIT, now, wanted))
    by_check: dict[str, dict[str, Verdict]] = {}
    for verdict in found:
        by_check.setdefault(verdict.check, {})[verdict.slice.name] = verdict
    return by_check


def wrong(found: dict[str, dict[str, Verdict]]) -> dict[str, list[str]]:
    bad = {
        check: [name for name, v in by_slice.items() if not v.passed]
        for check, by_slice in found.items()
    }
    return {check: names for check, names in bad.items() if names}


@pytest.fixture
def loaded(warehouse: Warehouse) -> Warehouse:
    """Ten days of ten rows each, in the source and loaded from it."""
    warehouse.execute(
        "CREATE TABLE src (sold_at TIMESTAMPTZ, id BIGINT, amount BIGINT, came_at TIMESTAMPTZ)"
    )
    sold = ", ".join(
        f"(TIMESTAMPTZ '{day} 10:00:00+00', {n}, 2, TIMESTAMPTZ '{day} 11:00:00+00')"
        for day in DAYS
        for n in range(1, 11)
    )
    warehouse.execute(f"INSERT INTO src VALUES {sold}")
    with warehouse.session() as session:
        for day in DAYS:
            warehouse.write(SALES, str(day), frame(day, range(1, 11)), session=session)
    return warehouse


def test_ten_good_days_pass_every_check(loaded: Warehouse) -> None:
    found = look(loaded)
    assert list(found) == checks_of(SALES)
    assert wrong(found) == {}
    assert {len(by_slice) for by_slice in found.values()} == {10}


def test_a_day_whose_rows_were_taken_away_behind_our_back_is_the_only_red_one(
    loaded: Warehouse,
) -> None:
    loaded.execute(f"DELETE FROM sales WHERE day = DATE '{DAYS[3]}' AND id = 7")
    found = look(loaded)
    assert wrong(found) == {"row_count": [str(DAYS[3])], "totals": [str(DAYS[3])]}
    verdict = found["row_count"][str(DAYS[3])]
    assert "rows 9, and the last load has 10" in verdict.why
    assert "rows 9, and the source has 10" in verdict.why
    totals = found["totals"][str(DAYS[3])].worst
    assert (totals.expected, totals.found) == (20, 18)


def test_a_day_that_is_gone_is_missing_and_not_only_short(loaded: Warehouse) -> None:
    loaded.execute(f"DELETE FROM sales WHERE day = DATE '{DAYS[5]}'")
    assert wrong(look(loaded, wanted=["missing_partitions"])) == {
        "missing_partitions": [str(DAYS[5])]
    }


def test_twins_made_by_hand_are_found_with_a_sample_and_the_query_for_all_of_them(
    loaded: Warehouse,
) -> None:
    loaded.execute(f"INSERT INTO sales SELECT * FROM sales WHERE day = DATE '{DAYS[2]}' AND id < 4")
    found = look(loaded, wanted=["duplicate_keys"])
    assert wrong(found) == {"duplicate_keys": [str(DAYS[2])]}
    verdict = found["duplicate_keys"][str(DAYS[2])]
    assert verdict.worst.found == 3
    assert sorted(verdict.sample) == ["1, 2", "2, 2", "3, 2"]
    assert sorted(asked(loaded, verdict)) == [(1, 2), (2, 2), (3, 2)]


def test_samples_stay_few_where_twins_come_by_the_thousand(loaded: Warehouse) -> None:
    loaded.execute("INSERT INTO sales SELECT * FROM sales")
    found = look(loaded, wanted=["duplicate_keys"])
    assert len(wrong(found)["duplicate_keys"]) == 10
    assert max(len(v.sample) for v in found["duplicate_keys"].values()) == 5


def asked(warehouse: Warehouse, verdict: Verdict) -> list[tuple[Any, ...]]:
    """Run the query that a verdict gives to a reader, in the warehouse's own words."""
    assert verdict.sql is not None
    with warehouse.session(read_only=True) as session:
        return session.fetch(verdict.sql)


def copies(warehouse: Warehouse, *twins: float | None) -> float:
    """Return how many rows too many the check finds where two have these values in a part of their key."""
    table = Table("t", SliceColumn("day", "date"), unique_key=("a", "b"))
    data = pa.table({"day": [FIRST] * 2, "a": pa.array(twins, pa.float64()), "b": ["x", "x"]})
    warehouse.write(Table("t"), None, data)
    found = look(warehouse, table, [FIRST], wanted=["duplicate_keys"])
    return found["duplicate_keys"][str(FIRST)].worst.found


@pytest.mark.parametrize("twins", [(None, None), (0.0, -0.0)], ids=["null", "zero"])
def test_keys_with_nothing_in_them_are_told_apart_as_people_do(
    warehouse: Warehouse, twins: tuple[float | None, float | None]
) -> None:
    assert copies(warehouse, *twins) == 1


@pytest.mark.but("sqlserver", why="it has no float that is no number, and refuses such rows")
def test_keys_that_are_no_number_are_twins(warehouse: Warehouse) -> None:
    assert copies(warehouse, float("nan"), float("nan")) == 1


def test_twins_on_two_days_of_one_month_are_twins_of_the_month(warehouse: Warehouse) -> None:
    table = Table("t", SliceColumn("day", "date"), unique_key=("id",))
    may, june = (
        Slice(table, Window(at(f"2026-0{m}-01 00:00"), at(f"2026-0{m + 1}-01 00:00")), partition=n)
        for m, n in ((5, "may"), (6, "june"))
    )
    days = [date(2026, 5, 1), date(2026, 5, 30), date(2026, 6, 1), date(2026, 6, 2)]
    warehouse.write(Table("t"), None, {"day": days, "id": [1, 1, 1, 2]})
    with warehouse.session() as session:
        found = list(verdicts(session, table, [may, june], AUDIT, NOW, ["duplicate_keys"]))
    assert [(v.slice.name, v.worst.found) for v in found] == [("may", 1), ("june", 0)]


@pytest.mark.parametrize("zone", ["UTC", "America/New_York", "Asia/Kolkata"])
@pytest.mark.parametrize("hours", [1, 24, 7 * 24])
def test_each_slice_is_counted_apart_in_any_zone(
    warehouse: Warehouse, zone: str, hours: int
) -> None:
    begin = at("2026-03-07 00:00") if hours < 24 else Window.day("2026-03-07", zone).start
    table = Table("t", SliceColumn("at", zone=zone), unique_key=("id",))
    moments = [begin + timedelta(minutes=20 * n) for n in range(3 * 3 * 24 * 7)]
    warehouse.write(Table("t"), None, {"at": moments, "id": [1] * len(moments)})
    cut = [
        Slice(
            table,
            Window(begin + timedelta(hours=hours * n), begin + timedelta(hours=hours * (n + 1))),
        )
        for n in range(3)
    ]
    with warehouse.session() as session:
        found = list(verdicts(session, table, cut, AUDIT, NOW, ["duplicate_keys"]))
    assert [v.worst.found for v in found] == [3 * hours - 1] * 3


# late rows


def test_rows_that_arrive_after_the_load_name_exactly_their_day(loaded: Warehouse) -> None:
    later = datetime.now(timezone.utc) + timedelta(days=21)
    loaded.execute(
        f"INSERT INTO src VALUES (TIMESTAMPTZ '{DAYS[3]} 09:00:00+00', 77, 2, TIMESTAMPTZ '{later.isoformat()}')"
    )
    found = look(loaded, wanted=["late_rows"])
    assert wrong(found) == {"late_rows": [str(DAYS[3])]}
    verdict = found["late_rows"][str(DAYS[3])]
    assert (verdict.worst.found, verdict.severity) == (1, "warn")
    assert [row[1] for row in asked(loaded, verdict)] == [77]


def test_a_row_is_late_by_the_read_of_its_own_day(loaded: Warehouse) -> None:
    between = datetime.now(timezone.utc)
    loaded.write(SALES, str(DAYS[1]), frame(DAYS[1], range(1, 11)))  # read again, after `between`
    for day in DAYS[:2]:
        loaded.execute(
            f"INSERT INTO src VALUES (TIMESTAMPTZ '{day} 09:00:00+00', 77, 2, TIMESTAMPTZ '{between.isoformat()}')"
        )
    assert wrong(look(loaded, wanted=["late_rows"])) == {"late_rows": [str(DAYS[0])]}


def test_a_day_that_was_never_loaded_has_no_late_rows(loaded: Warehouse) -> None:
    day = date(2026, 5, 20)
    loaded.execute(
        f"INSERT INTO src VALUES (TIMESTAMPTZ '{day} 09:00:00+00', 1, 2, TIMESTAMPTZ '2030-01-01 00:00:00+00')"
    )
    found = look(loaded, days=[day], wanted=["late_rows", "missing_partitions"])
    assert wrong(found) == {"missing_partitions": [str(day)]}


# empty days


def test_an_empty_day_is_green_where_nothing_is_expected_and_says_so(warehouse: Warehouse) -> None:
    sunday, monday = date(2026, 5, 3), date(2026, 5, 4)
    table = Table("sales", SliceColumn("day", "date"), closed=("sunday",))
    warehouse.write(table, "2026-05-05", {"day": [date(2026, 5, 5)], "id": [1]})
    found = look(warehouse, table, [sunday, monday], wanted=["missing_partitions"])
    assert wrong(found) == {"missing_partitions": [str(monday)]}
    assert "none is expected on such a day" in found["missing_partitions"][str(sunday)].why


def test_a_day_that_is_not_over_is_not_missing_and_yesterday_is(warehouse: Warehouse) -> None:
    table = Table("sales", SliceColumn("day", "date", "Australia/Brisbane"))
    warehouse.write(table, "2023-12-01", {"day": [date(2023, 12, 1)], "id": [1]})
    yesterday, today = date(2023, 12, 4), date(2023, 12, 5)
    now = at("2023-12-05 11:00")  # nine in the evening there
    found = look(warehouse, table, [yesterday, today], now, ["missing_partitions"])
    assert wrong(found) == {"missing_partitions": [str(yesterday)]}
    after = look(
        warehouse, table, [yesterday, today], at("2023-12-05 14:00"), ["missing_partitions"]
    )
    assert wrong(after) == {"missing_partitions": [str(yesterday), str(today)]}


def test_a_slice_that_a_run_emptied_with_a_reason_is_green_and_tells_it(loaded: Warehouse) -> None:
    none = frame(DAYS[0], [])
    table = replace(SALES, expects=())
    loaded.write(
        table,
        str(DAYS[0]),
        none.cast(frame(DAYS[0], [1]).schema),
        allows=frozenset({"empty"}),
        reason="all tests",
    )
    found = look(loaded, table, wanted=["missing_partitions"])
    assert wrong(found) == {}
    assert "(all tests)" in found["missing_partitions"][str(DAYS[0])].why


def test_a_day_that_was_loaded_at_noon_and_never_again_is_told(warehouse: Warehouse) -> None:
    table = Table("sales", SliceColumn("day", "date"))
    today = datetime.now(timezone.utc).date()
    warehouse.write(table, str(today), {"day": [today], "id": [1]})
    tomorrow = datetime.now(timezone.utc) + timedelta(days=1)
    assert wrong(look(warehouse, table, [today], datetime.now(timezone.utc))) == {}
    found = look(warehouse, table, [today], tomorrow, ["missing_partitions"])
    verdict = found["missing_partitions"][str(today)]
    assert not verdict.passed
    assert "before the slice was over" in verdict.why
    assert verdict.severity == "warn"


# hours


def test_an_hour_without_rows_is_named_and_the_skipped_one_is_not(warehouse: Warehouse) -> None:
    zone = "America/New_York"
    table = Table("t", SliceColumn("at", zone=zone), hours=(0, 24))
    day = Window.day("2024-03-10", zone)  # 23 hours
    every_30_minutes = [day.start + timedelta(minutes=30 * n) for n in range(46)]
    warehouse.write(Table("t"), None, {"at": every_30_minutes})
    found = look(warehouse, table, [date(2024, 3, 10)], wanted=["missing_partitions"])
    assert wrong(found) == {}
    warehouse.execute(
        "DELETE FROM t WHERE \"at\" >= '2024-03-10 17:00:00+00' AND \"at\" < '2024-03-10 18:00:00+00'"
    )
    found = look(warehouse, table, [date(2024, 3, 10)], wanted=["missing_partitions"])
    assert "no row of the hours 13:00" in found["missing_partitions"]["2024-03-10"].why


def test_hours_in_which_nothing_happens_are_not_asked_for(warehouse: Warehouse) -> None:
    table = Table(
        "t", SliceColumn("at", "timestamp", "Asia/Kolkata"), hours=(9, 11), closed=("sunday",)
    )
    rows = [
        datetime(2026, 5, 4, 9, 30),
        datetime(2026, 5, 4, 10, 59),
        datetime(2026, 5, 5, 9, 0),
        datetime(2026, 5, 3, 4, 0),
    ]
    warehouse.write(Table("t"), None, {"at": pa.array(rows, pa.timestamp("us"))})
    days = [date(2026, 5, 3), date(2026, 5, 4), date(2026, 5, 5)]
    found = look(warehouse, table, days, wanted=["missing_partitions"])
    assert wrong(found) == {"missing_partitions": ["2026-05-05"]}
    assert "hours 10:00" in found["missing_partitions"]["2026-05-05"].why


# rules, schema, errors


def test_a_rule_of_ones_own_names_the_day_that_breaks_it(loaded: Warehouse) -> None:
    table = replace(
        SALES, expects=(NoRows("positive", "SELECT id, amount FROM slice_rows WHERE amount <= 0"),)
    )
    assert wrong(look(loaded, table, wanted=["positive"])) == {}
    loaded.execute(f"UPDATE sales SET amount = -1 WHERE day = DATE '{DAYS[4]}' AND id IN (5, 6)")
    found = look(loaded, table, wanted=["positive"])
    assert wrong(found) == {"positive": [str(DAYS[4])]}
    assert sorted(found["positive"][str(DAYS[4])].sample) == ["5, -1", "6, -1"]


def test_a_column_that_changed_its_type_is_told(loaded: Warehouse) -> None:
    declared = replace(SALES, columns={"day": "DATE", "id": "BIGINT", "amount": "DECIMAL(12,2)"})
    (why,) = {v.why for v in look(loaded, declared, wanted=["schema"])["schema"].values()}
    now = loaded.type_of("BIGINT")
    assert f"'amount' is declared as DECIMAL(12,2) and is {now}".lower() in why.lower()
    right = replace(SALES, columns={"day": "DATE", "id": "BIGINT", "amount": "BIGINT"})
    assert wrong(look(loaded, right, wanted=["schema"])) == {}


@pytest.mark.but(
    "bigquery",
    why="the emulator's API does not hear of columns that SQL has added",
)
def test_a_column_that_was_added_by_hand_is_told(loaded: Warehouse) -> None:
    right = replace(SALES, columns={"day": "DATE", "id": "BIGINT", "amount": "BIGINT"})
    loaded.execute("ALTER TABLE sales ADD COLUMN colour VARCHAR")
    (why,) = {v.why for v in look(loaded, right, wanted=["schema"])["schema"].values()}
    assert "'colour' is not declared" in why


@pytest.mark.parametrize("bits", [24, 25])
def test_a_float_declared_by_its_bits_is_the_size_that_the_engine_made_of_it(
    postgres: Warehouse, bits: int
) -> None:
    postgres.execute(f"CREATE TABLE readings (day DATE, heat float({bits}))")
    declared = {"day": "date", "heat": f"float({bits})"}
    table = Table("readings", SliceColumn("day", "date"), columns=declared)
    with postgres.session() as session:
        there = session.columns_of("readings")
        assert schema_problems(session, table, there) == []
        other = replace(table, columns={**declared, "heat": f"float({49 - bits})"})
        assert len(schema_problems(session, other, there)) == 1


def test_a_table_that_is_not_there_fails_every_check_but_those_that_need_none(
    warehouse: Warehouse,
) -> None:
    warehouse.write(Table("another"), None, {"id": [1]})
    found = look(warehouse, replace(SALES, source=None, expects=()), DAYS[:1])
    assert set(wrong(found)) == {"missing_partitions", "schema"}


def test_a_check_that_cannot_be_asked_is_never_green(loaded: Warehouse) -> None:
    loaded.execute("DROP TABLE src")
    found = look(loaded)
    assert set(wrong(found)) == {"row_count", "totals", "late_rows"}
    assert "could not be asked" in found["totals"][str(DAYS[0])].why
    rule = NoRows("odd", "SELECT colour FROM slice_rows")
    found = look(loaded, replace(SALES, expects=(rule,)), wanted=["odd"])
    assert wrong(found) == {"odd": [str(day) for day in DAYS]}


def test_queries_are_asked_for_every_slice(loaded: Warehouse) -> None:
    loaded.execute(
        "CREATE TABLE control (day DATE, n BIGINT)",
        f"INSERT INTO control VALUES (DATE '{DAYS[0]}', 10)",
    )
    rule = RowCount(against="SELECT max(n) FROM control WHERE day = {start}", tolerance=0)
    found = look(loaded, replace(SALES, expects=(rule,)), wanted=["row_count"])
    assert wrong(found) == {"row_count": [str(day) for day in DAYS[1:]]}
    assert "gave no number" in found["row_count"][str(DAYS[1])].why


def test_regions_are_checked_apart(warehouse: Warehouse) -> None:
    table = Table(
        "t",
        SliceColumn("day", "date"),
        dimensions=("region",),
        unique_key=("id",),
        source=Source("src", on="day"),
        expects=(RowCount(tolerance=0),),
    )
    warehouse.execute("CREATE TABLE src (day DATE, region TEXT, id BIGINT)")
    both = [Slice(table, Window.day(FIRST), (("region", r),), partition=r) for r in ("eu", "us")]
    for region, ids in (("eu", [1, 2]), ("us", [1])):
        for number in ids:
            warehouse.execute(f"INSERT INTO src VALUES (DATE '{FIRST}', '{region}', {number})")
        data = pa.table({"day": [FIRST] * len(ids), "region": [region] * len(ids), "id": ids})
        warehouse.write(table, str(FIRST), data, fixed={"region": region})
    warehouse.execute("INSERT INTO t SELECT * FROM t WHERE region = 'us'")
    with warehouse.session() as session:
        found = list(verdicts(session, table, both, AUDIT, NOW, ["row_count", "duplicate_keys"]))
    assert [(v.slice.name, v.check, v.passed) for v in found] == [
        ("eu", "row_count", True),
        ("eu", "duplicate_keys", True),
        ("us", "row_count", False),
        ("us", "duplicate_keys", False),
    ]


# slices that are looked at together are still slices


def test_a_rule_about_the_slice_as_a_whole_sees_each_slice_alone(warehouse: Warehouse) -> None:
    rule = NoRows("at_least_5", "SELECT count(*) AS n FROM slice_rows HAVING count(*) < 5")
    table = Table("t", SliceColumn("day", "date"), expects=(rule,))
    rows_of = {DAYS[0]: 10, DAYS[1]: 2, DAYS[2]: 10}
    warehouse.write(
        Table("t"), None, {"day": [day for day, n in rows_of.items() for _ in range(n)]}
    )
    found = look(warehouse, table, DAYS[:3], wanted=["at_least_5"])
    assert wrong(found) == {"at_least_5": [str(DAYS[1])]}


def test_a_slice_that_cannot_be_asked_leaves_the_others_their_answers(warehouse: Warehouse) -> None:
    rule = NoRows("codes", "SELECT * FROM slice_rows WHERE CAST(code AS INTEGER) < 0")
    table = Table("t", SliceColumn("day", "date"), expects=(rule,))
    warehouse.write(Table("t"), None, {"day": DAYS[:3], "code": ["1", "x", "3"]})
    found = look(warehouse, table, DAYS[:3], wanted=["codes"])
    assert wrong(found) == {"codes": [str(DAYS[1])]}
    assert "could not be asked" in found["codes"][str(DAYS[1])].why


@pytest.mark.parametrize(
    ("kind", "values"), [("BOOLEAN", ("true", "false")), ("INTEGER", ("5", "6"))]
)
def test_dimensions_that_are_no_text_are_told_apart_as_the_engine_does(
    warehouse: Warehouse, kind: str, values: tuple[str, str]
) -> None:
    each_dimension_is_its_own(warehouse, kind, values)


@pytest.mark.but("sqlserver", why="it compares them to the letter, and refuses such rows")
def test_numbers_written_with_a_nought_in_front_are_the_numbers(warehouse: Warehouse) -> None:
    each_dimension_is_its_own(warehouse, "INTEGER", ("05", "06"))


def each_dimension_is_its_own(warehouse: Warehouse, kind: str, values: tuple[str, str]) -> None:
    """Load two slices that differ in a dimension of that type, and add a late row to the second one."""
    warehouse.execute(f"CREATE TABLE src (day DATE, part {kind}, came TIMESTAMPTZ)")
    warehouse.execute(f"CREATE TABLE t (day DATE, part {kind})")
    table = Table(
        "t",
        SliceColumn("day", "date"),
        dimensions=("part",),
        source=Source("src", on="day", ingested_at="came"),
        expects=(RowCount(tolerance=0),),
    )
    both = [Slice(table, Window.day(FIRST), (("part", v),), partition=v) for v in values]
    for value in values:
        warehouse.execute(
            f"INSERT INTO src VALUES (DATE '{FIRST}', '{value}', '2026-05-01 00:00:00+00')"
        )
        select = Select("SELECT day, part FROM src")
        warehouse.write(table, str(FIRST), select, fixed={"part": value})
    with warehouse.session() as session:
        assert [v.why for v in verdicts(session, table, both, AUDIT, NOW) if not v.passed] == []
        assert late_slices(session, AUDIT, table, both) == []
    warehouse.execute(
        f"INSERT INTO src VALUES (DATE '{FIRST}', '{values[1]}', '2030-01-01 00:00:00+00')"
    )
    with warehouse.session() as session:
        (late,) = late_slices(session, AUDIT, table, both)
    assert (late.slice.name, late.rows) == (values[1], 1)


def test_an_hour_that_one_region_lacks_is_not_filled_by_another(warehouse: Warehouse) -> None:
    table = Table("t", SliceColumn("at", "timestamp"), dimensions=("region",), hours=(8, 10))
    rows = [datetime(2026, 5, 1, 8), datetime(2026, 5, 1, 9), datetime(2026, 5, 1, 8)]
    data = {"at": pa.array(rows, pa.timestamp("us")), "region": ["us", "us", "eu"]}
    warehouse.write(Table("t"), None, data)
    cut = [Slice(table, Window.day(FIRST), (("region", r),), partition=r) for r in ("eu", "us")]
    for some in (cut, cut[:1]):
        with warehouse.session() as session:
            found = list(verdicts(session, table, some, AUDIT, NOW, ["missing_partitions"]))
        assert [v.slice.name for v in found if not v.passed] == ["eu"]


def test_a_table_that_is_cut_anew_is_judged_by_no_load_of_the_old_cut(warehouse: Warehouse) -> None:
    table = Table("t", SliceColumn("day", "date"), unique_key=("id",))
    week = Window(at("2026-05-03 00:00"), at("2026-05-10 00:00"))
    seven = [date(2026, 5, 3 + n) for n in range(7)]
    warehouse.write(table, week, {"day": seven * 2, "id": list(range(14))})
    warehouse.write(table, "2026-05-03", {"day": seven[:1], "id": [100]})
    assert wrong(look(warehouse, table, seven)) == {}
    assert wrong(look(warehouse, table, seven[:1])) == {}
    # and the other way round: the day's own load is older than the week's
    warehouse.write(table, week, {"day": seven * 3, "id": list(range(21))})
    assert wrong(look(warehouse, table, seven)) == {}
    warehouse.execute("DELETE FROM t WHERE day = DATE '2026-05-03'")
    assert wrong(look(warehouse, table, seven)) == {"missing_partitions": ["2026-05-03"]}


def test_a_run_that_might_load_another_count_did_not_allow_rows_to_vanish_later(
    warehouse: Warehouse,
) -> None:
    table = Table("t", SliceColumn("day", "date"), expects=(RowCount(against=10),))
    allowed = {"allows": frozenset({"row_count"}), "reason": "a strike"}
    warehouse.write(table, str(FIRST), {"day": [FIRST] * 5}, **allowed)
    told = look(warehouse, table, [FIRST], wanted=["row_count"])["row_count"][str(FIRST)]
    assert (told.passed, told.severity) == (False, "warn")
    warehouse.execute("DELETE FROM t")
    told = look(warehouse, table, [FIRST], wanted=["row_count"])["row_count"][str(FIRST)]
    assert (told.passed, told.severity) == (False, "block")


@pytest.mark.but(
    "snowflake", "bigquery", why="both emulators add up such decimals as floating numbers"
)
def test_decimals_of_many_digits_are_summed_to_the_last_one(warehouse: Warehouse) -> None:
    huge = "333333333333333333333333333333333.33"
    warehouse.execute(
        "CREATE TABLE src (day DATE, rows NUMERIC(38,2))",
        "CREATE TABLE t (day DATE, rows NUMERIC(38,2))",
    )
    for day in DAYS[:2]:
        for table_name in ("src", "t"):
            warehouse.execute(f"INSERT INTO {table_name} VALUES (DATE '{day}', {huge})")
    table = Table(
        "t",
        SliceColumn("day", "date"),
        source=Source("src", on="day"),
        expects=(Totals(("rows",), tolerance=0),),
    )
    assert wrong(look(warehouse, table, DAYS[:2], wanted=["totals"])) == {}
    warehouse.execute(f"UPDATE t SET rows = rows + 1 WHERE day = DATE '{DAYS[1]}'")
    assert wrong(look(warehouse, table, DAYS[:2], wanted=["totals"])) == {"totals": [str(DAYS[1])]}


def test_a_clock_without_a_zone_makes_late_rows_unknown_and_nothing_else(
    warehouse: Warehouse,
) -> None:
    warehouse.execute(
        "CREATE TABLE src (day DATE, came TIMESTAMP)",
        f"INSERT INTO src VALUES (DATE '{FIRST}', '2026-05-01 10:00:00')",
    )
    table = Table(
        "t",
        SliceColumn("day", "date"),
        source=Source("src", on="day", ingested_at="came"),
        expects=(RowCount(),),
    )
    warehouse.write(table, str(FIRST), {"day": [FIRST]})
    found = look(warehouse, table, [FIRST])
    assert wrong(found) == {"late_rows": [str(FIRST)]}


def test_queries_may_end_in_comments_and_begin_with_their_own_with(warehouse: Warehouse) -> None:
    warehouse.execute(
        "CREATE SCHEMA raw",
        'CREATE TABLE raw."my-orders" (day DATE)',
        f"INSERT INTO raw.\"my-orders\" VALUES (DATE '{FIRST}')",
    )
    table = Table(
        "t",
        SliceColumn("day", "date"),
        source=Source('raw."my-orders"', on="day"),
        expects=(
            RowCount(),
            RowCount(against="SELECT 1 -- one row"),
            RowCount(against="SELECT 1; -- one row"),
            NoRows(
                "own_with", "WITH a AS (SELECT * FROM slice_rows) SELECT day FROM a -- all of them"
            ),
        ),
    )
    free = replace(table, expects=table.expects[:-1])
    warehouse.write(free, str(FIRST), {"day": [FIRST]})
    found = look(warehouse, table, [FIRST])
    assert wrong(found) == {"own_with": [str(FIRST)]}
    verdict = found["own_with"][str(FIRST)]
    assert verdict.sample == (str(FIRST),)
    assert asked(warehouse, verdict) == [(FIRST,)]


# size


class Counting:
    """A session that counts its statements."""

    def __init__(self, session: Session) -> None:
        self._session, self.asked = session, 0

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._session, name)
        if name in ("fetch", "fetch_arrow", "execute", "columns_of"):
            self.asked += 1
        return found


@pytest.mark.but(
    "bigquery", why="the emulator takes ten seconds and more for a statement of 400 parts"
)
def test_ten_years_take_as_many_statements_for_each_400_days_as_one_day(loaded: Warehouse) -> None:
    table = replace(
        SALES,
        expects=(*SALES.expects, NoRows("positive", "SELECT * FROM slice_rows WHERE amount < 0")),
    )
    years = [date(2016, 8, 1) + timedelta(days=n) for n in range(3650)]

    def statements(days: Sequence[date]) -> int:
        with loaded.session() as session:
            counting = Counting(session)
            list(verdicts(counting, table, slices(table, days), AUDIT, NOW))  # type: ignore[arg-type]
            return counting.asked

    one = statements(years[:1])
    assert statements(years[:400]) == one
    assert statements(years) <= 10 * one


def test_an_hour_that_the_sources_clock_shows_twice_hides_no_other_hour(
    warehouse: Warehouse,
) -> None:
    source = Source("staging.orders", on="at", on_zone="America/New_York")
    table = Table("orders", SliceColumn("at", "timestamptz"), source=source, expects=(RowCount(),))
    first = datetime(
        2026, 11, 1, 3, tzinfo=timezone.utc
    )  # 23:00 in New York, and at 06:00 its clock goes back
    hours = [first + timedelta(hours=n) for n in range(6)]
    clocks = [
        hour.astimezone(ZoneInfo("America/New_York")).replace(tzinfo=None, fold=0) for hour in hours
    ]
    warehouse.write(Table("orders"), None, pa.table({"at": pa.array(hours)}))
    warehouse.write(Table("staging.orders"), None, pa.table({"at": pa.array(clocks)}))
    cut = [Slice(table, Window(hour, hour + timedelta(hours=1))) for hour in hours]
    with warehouse.session(read_only=True) as session:
        found = list(verdicts(session, table, cut, AUDIT, NOW, ["row_count"]))
    assert [verdict.passed for verdict in found] == [True, True, False, False, True, True]
    assert "shows that hour twice" in found[3].why
