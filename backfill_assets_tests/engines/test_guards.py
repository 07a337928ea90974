"""What keeps a slice as it was: nothing came, too little came, or what came was read too early."""

from __future__ import annotations

import dataclasses
from datetime import date, datetime, timedelta, timezone

import pyarrow as pa
import pytest

from backfill_assets.errors import (
    BadRows,
    DeclarationError,
    EmptySlice,
    SchemaMismatch,
    ShrunkSlice,
    StaleSource,
)
from backfill_assets.table import SliceColumn, Table
from backfill_assets.window import Window
from backfill_assets.writing import Load, Select
from backfill_assets_tests.warehouses import AUDIT, Warehouse, at

DAY, HOLIDAY = date(2026, 5, 12), date(2026, 5, 1)
COLUMN = SliceColumn("day", "date")
SALES = Table("sales", COLUMN, unique_key=("id",))
NONE_CAME = pa.table({"day": pa.array([], pa.date32()), "id": pa.array([], pa.int64())})


def rows(count: int, day: date = DAY) -> dict[str, list[object]]:
    return {"day": [day] * count, "id": list(range(count))}


# empty


def test_an_empty_frame_is_refused_where_nobody_said_that_empty_is_right(
    warehouse: Warehouse,
) -> None:
    warehouse.write(SALES, "2026-05-12", rows(3))
    with pytest.raises(EmptySlice, match="sales 2026-05-12 was left as it was: no rows came"):
        warehouse.write(SALES, "2026-05-12", NONE_CAME)
    assert warehouse.count("sales") == 3


def test_a_run_may_empty_a_slice_when_it_says_why(warehouse: Warehouse) -> None:
    warehouse.write(SALES, "2026-05-12", rows(300))
    load = warehouse.write(
        SALES, "2026-05-12", NONE_CAME, allows=frozenset({"empty"}), reason="all were tests"
    )
    assert (load.rows_before, load.rows_after, load.reason) == (300, 0, "all were tests")
    with pytest.raises(DeclarationError, match="gives no reason"):
        warehouse.write(SALES, "2026-05-12", NONE_CAME, allows=frozenset({"empty"}))


def test_an_empty_holiday_is_right_and_the_day_after_is_not(warehouse: Warehouse) -> None:
    table = Table("sales", COLUMN, allow_empty=frozenset({HOLIDAY}))
    assert warehouse.write(table, str(HOLIDAY), NONE_CAME).rows_after == 0
    with pytest.raises(EmptySlice):
        warehouse.write(table, "2026-05-02", NONE_CAME)
    with pytest.raises(EmptySlice):
        warehouse.write(table, Window(at("2026-05-01 00:00"), at("2026-05-03 00:00")), NONE_CAME)


def test_an_empty_first_day_makes_the_table_with_its_types(warehouse: Warehouse) -> None:
    table = Table("sales", COLUMN, allow_empty=True)
    for _ in range(2):
        warehouse.write(table, "2026-05-12", NONE_CAME)
    assert list(warehouse.columns("sales") or {}) == ["day", "id"]
    assert warehouse.write(table, "2026-05-12", rows(2)).rows_after == 2


def test_an_empty_first_day_without_types_is_refused_unless_they_are_declared(
    warehouse: Warehouse,
) -> None:
    untyped = pa.table({"day": pa.array([], pa.null()), "id": pa.array([], pa.null())})
    with pytest.raises(SchemaMismatch, match="Declare the columns"):
        warehouse.write(Table("sales", COLUMN, allow_empty=True), "2026-05-12", untyped)
    declared = Table("sales", COLUMN, columns={"day": "DATE", "id": "BIGINT"}, allow_empty=True)
    assert warehouse.write(declared, "2026-05-12", untyped).rows_after == 0


def test_a_frame_without_columns_is_refused_first_and_later(warehouse: Warehouse) -> None:
    table = Table("sales", COLUMN, allow_empty=True)
    for _ in range(2):
        with pytest.raises(SchemaMismatch, match="the frame has no columns"):
            warehouse.write(table, "2026-05-12", pa.table({}))
        warehouse.write(table, "2026-05-12", rows(1))
    assert warehouse.count("sales") == 1


# shrunk


def test_a_slice_that_lost_most_of_its_rows_is_refused_and_a_smaller_loss_is_not(
    warehouse: Warehouse,
) -> None:
    warehouse.write(SALES, "2026-05-12", rows(200))
    with pytest.raises(ShrunkSlice, match="it holds 200 rows and only 99 came"):
        warehouse.write(SALES, "2026-05-12", rows(99))
    assert warehouse.count("sales") == 200
    assert len(warehouse.loads()) == 1
    assert warehouse.write(SALES, "2026-05-12", rows(100)).rows_after == 100
    load = warehouse.write(
        SALES, "2026-05-12", rows(3), allows=frozenset({"shrink"}), reason="bots removed"
    )
    assert (load.rows_before, load.rows_after) == (100, 3)
    assert warehouse.write(SALES, "2026-05-12", rows(1)).rows_after == 1, (
        "small slices may do as they like"
    )


# stale


def ago(minutes: float) -> datetime:
    return datetime.now(timezone.utc) - timedelta(minutes=minutes)


def test_a_slow_backfill_does_not_overwrite_a_newer_live_load(warehouse: Warehouse) -> None:
    warehouse.write(SALES, "2026-05-12", rows(2), run_id="live", source_read_at=ago(5))
    with pytest.raises(StaleSource, match="run live wrote it from a source read at"):
        warehouse.write(
            SALES, "2026-05-12", rows(1), run_id="slow", lane="backfill", source_read_at=ago(10)
        )
    assert warehouse.count("sales") == 2


def test_a_late_live_run_does_not_overwrite_a_newer_backfill(warehouse: Warehouse) -> None:
    warehouse.write(
        SALES, "2026-05-12", rows(2), run_id="backfill", lane="backfill", source_read_at=ago(5)
    )
    with pytest.raises(StaleSource, match="run backfill wrote it"):
        warehouse.write(SALES, "2026-05-12", rows(1), run_id="late", source_read_at=ago(10))
    assert (
        warehouse.write(
            SALES, "2026-05-12", rows(1), run_id="fresh", source_read_at=ago(1)
        ).rows_before
        == 2
    )


def test_a_month_read_early_does_not_overwrite_one_newer_day_of_it(warehouse: Warehouse) -> None:
    warehouse.write(SALES, "2026-05-12", rows(2), source_read_at=ago(5))
    may = Window(at("2026-05-01 00:00"), at("2026-06-01 00:00"))
    with pytest.raises(StaleSource):
        warehouse.write(SALES, may, rows(4), source_read_at=ago(10))
    june = Window(at("2026-06-01 00:00"), at("2026-07-01 00:00"))
    assert (
        warehouse.write(SALES, june, rows(4, date(2026, 6, 1)), source_read_at=ago(10)).rows_after
        == 4
    )
    with pytest.raises(StaleSource):
        warehouse.write(SALES, None, rows(4), source_read_at=ago(10))


def test_two_runs_from_one_read_of_the_source_may_follow_each_other(warehouse: Warehouse) -> None:
    read = ago(5)
    for run_id in ("first", "second", "first"):
        load = warehouse.write(SALES, "2026-05-12", rows(2), run_id=run_id, source_read_at=read)
        assert load.source_read_at == read


def test_a_read_is_never_later_than_the_load_it_was_for(warehouse: Warehouse) -> None:
    load = warehouse.write(SALES, "2026-05-12", rows(2), source_read_at=ago(-0.01))
    assert load.source_read_at == load.started_at
    warehouse.write(SALES, "2026-05-12", rows(2))


@pytest.mark.parametrize("hours", [-3, 3])
def test_a_machine_whose_clock_is_wrong_is_compared_on_the_clock_of_the_warehouse(
    warehouse: Warehouse, hours: int
) -> None:
    with warehouse.session() as session:
        clock = session.clock
        session.clock = lambda: clock() + timedelta(hours=hours)  # type: ignore[method-assign]
        live = warehouse.write(SALES, "2026-05-12", rows(2), session=session)
        told = ago(5)
        with pytest.raises(StaleSource):
            warehouse.write(SALES, "2026-05-12", rows(2), session=session, source_read_at=told)
        now = datetime.now(timezone.utc)
        after = warehouse.write(SALES, "2026-05-12", rows(2), session=session, source_read_at=now)
    assert live.started_at < after.source_read_at <= after.started_at


def test_a_failed_load_makes_nobody_stale(warehouse: Warehouse) -> None:
    warehouse.write(SALES, "2026-05-12", rows(2), source_read_at=ago(10))
    with pytest.raises(BadRows):
        warehouse.write(SALES, "2026-05-12", rows(1, HOLIDAY), source_read_at=ago(1))
    assert warehouse.write(SALES, "2026-05-12", rows(1), source_read_at=ago(5)).rows_after == 1


def test_a_select_that_was_overtaken_while_it_was_read_is_read_again(warehouse: Warehouse) -> None:
    warehouse.execute(
        "CREATE TABLE source (day DATE, id BIGINT)",
        "INSERT INTO source VALUES (DATE '2026-05-12', 1)",
    )
    overtaken: list[bool] = []
    with warehouse.session() as session:
        execute, stage = session.execute, session.stage_select
        warehouse.write(SALES, "2026-05-12", rows(1), session=session)

        def staged_then_overtaken(name: str, sql: str) -> str:
            relation = stage(name, sql)
            if not overtaken:
                overtaken.append(True)
                execute("INSERT INTO source VALUES (DATE '2026-05-12', 2)")
                execute(f"UPDATE {AUDIT.stored(session.spelling)} SET source_read_at = now()")
            return relation

        session.stage_select = staged_then_overtaken  # type: ignore[method-assign]
        load = warehouse.write(
            SALES,
            "2026-05-12",
            Select("SELECT * FROM source", on="day", on_kind="date"),
            session=session,
        )
    assert load.rows_after == 2
    assert overtaken == [True]


# the unique key


def test_rows_that_share_the_unique_key_are_refused_with_a_sample(warehouse: Warehouse) -> None:
    twice = {"day": [DAY] * 4, "id": [1, 2, 2, 3]}
    with pytest.raises(
        BadRows, match=r"1 values of the unique key \(id\) come more than once, for example 2 x2"
    ):
        warehouse.write(SALES, "2026-05-12", twice)


def test_a_row_without_any_key_is_refused_and_parts_without_a_value_count_as_equal(
    warehouse: Warehouse,
) -> None:
    with pytest.raises(BadRows, match=r"1 rows have no value in the unique key \(id\)"):
        warehouse.write(SALES, "2026-05-12", {"day": [DAY] * 2, "id": [1, None]})
    two = Table("lines", COLUMN, unique_key=("id", "line"))
    lines = {"day": [DAY] * 3, "id": [1, 1, 2], "line": [None, 1, None]}
    assert warehouse.write(two, "2026-05-12", lines).rows_after == 3
    with pytest.raises(BadRows, match="1, None x2"):
        warehouse.write(two, "2026-05-12", {"day": [DAY] * 2, "id": [1, 1], "line": [None, None]})


# dimensions

REGIONS = Table("sales", COLUMN, unique_key=("id",), dimensions=("region",))


def region(name: str, *ids: int) -> dict[str, list[object]]:
    return {"day": [DAY] * len(ids), "region": [name] * len(ids), "id": list(ids)}


def test_a_region_of_a_day_is_replaced_without_the_other_regions(warehouse: Warehouse) -> None:
    for _ in range(2):
        warehouse.write(REGIONS, "2026-05-12", region("eu", 1, 2), fixed={"region": "eu"})
        warehouse.write(REGIONS, "2026-05-12", region("l'été", 3), fixed={"region": "l'été"})
    assert warehouse.rows("SELECT region, count(*) FROM sales GROUP BY region ORDER BY region") == [
        ("eu", 2),
        ("l'été", 1),
    ]
    assert {load[0] for load in warehouse.loads()} == {"2026-05-12|eu", "2026-05-12|l'été"}


def test_rows_of_another_region_or_of_none_are_refused(warehouse: Warehouse) -> None:
    for stray in ("us", None):
        with pytest.raises(BadRows, match="1 of 2 rows do not belong"):
            warehouse.write(
                REGIONS,
                "2026-05-12",
                {**region("eu", 1, 2), "region": ["eu", stray]},
                fixed={"region": "eu"},
            )


def test_a_slice_without_a_value_for_a_dimension_is_refused(warehouse: Warehouse) -> None:
    with pytest.raises(DeclarationError, match="Give one value for each dimension"):
        warehouse.write(REGIONS, "2026-05-12", region("eu", 1))


def test_a_newer_load_of_one_region_makes_no_other_region_stale(warehouse: Warehouse) -> None:
    warehouse.write(
        REGIONS, "2026-05-12", region("eu", 1), fixed={"region": "eu"}, source_read_at=ago(1)
    )
    warehouse.write(
        REGIONS, "2026-05-12", region("us", 2), fixed={"region": "us"}, source_read_at=ago(5)
    )
    assert warehouse.count("sales") == 2


# whole tables


def test_a_table_without_a_slice_column_is_replaced_whole(warehouse: Warehouse) -> None:
    customers = Table("customers", unique_key=("id",))
    for ids in ([1, 2], [2, 3, 4]):
        load = warehouse.write(customers, None, {"id": ids})
    assert warehouse.rows("SELECT id FROM customers ORDER BY id") == [(2,), (3,), (4,)]
    assert (load.partition_key, load.window_start) == ("(whole table)", None)
    with pytest.raises(DeclarationError, match="declares no slice column"):
        warehouse.write(customers, "2026-05-12", {"id": [1]})


def test_a_whole_table_is_rewritten_over_its_days_and_a_day_over_it(warehouse: Warehouse) -> None:
    warehouse.write(SALES, "2026-05-12", rows(2))
    warehouse.write(SALES, None, {"day": [DAY, HOLIDAY, None], "id": [1, 2, 3]})
    warehouse.write(SALES, "2026-05-12", rows(1))
    assert warehouse.count("sales") == 3


def test_the_audit_tells_which_day_was_rewritten_when_why_and_by_whom(warehouse: Warehouse) -> None:
    load = warehouse.write(
        SALES, "2026-05-12", rows(2), run_id="r1", lane="backfill", strategy="replay", backfill_id="b1",
        reason="prices", ticket="T-1", launched_by="eve", code_version="v2",
    )  # fmt: skip
    names = "table_name, partition_key, lane, strategy, backfill_id, reason, ticket, launched_by, code_version, rows_after"
    assert warehouse.rows(f"SELECT {names} FROM backfill.load_audit") == [
        ("sales", "2026-05-12", "backfill", "replay", "b1", "prices", "T-1", "eve", "v2", 2)
    ]
    stored = warehouse.rows(
        "SELECT window_start, window_end, source_read_at, started_at, committed_at FROM backfill.load_audit"
    )[0]
    assert tuple(t.astimezone(timezone.utc) for t in stored) == (
        load.window_start, load.window_end, load.source_read_at, load.started_at, load.committed_at,
    )  # fmt: skip
    assert (load.window_start, load.window_end) == (at("2026-05-12 00:00"), at("2026-05-13 00:00"))
    assert load.source_read_at <= load.started_at <= load.committed_at


def test_every_field_of_the_audit_is_read_back_as_it_was_written(warehouse: Warehouse) -> None:
    awkward = """O'Brien said: "\\ {all of it}"\n\tΩ 😀 -- $$ ; DROP TABLE x"""
    load = warehouse.write(
        SALES, "2026-05-12", rows(2), run_id="r1", reason=awkward, source_read_at=at("2026-05-13 04:05")
    )  # fmt: skip
    names = [field.name for field in dataclasses.fields(Load)]
    found = warehouse.rows(f"SELECT {', '.join(names)} FROM backfill.load_audit")
    assert [Load(**dict(zip(names, row, strict=True))) for row in found] == [load]
    assert load.reason == awkward
    assert not load.cost  # only BigQuery tells one, and its emulator bills nothing
