"""A SELECT that stays in the warehouse: its window is the DELETE's, whatever its author wrote."""

from __future__ import annotations

from typing import Any

import pytest

from backfill_assets.errors import BackfillError, BadRows, EmptySlice, MissingTable, SchemaMismatch
from backfill_assets.table import SliceColumn, Table
from backfill_assets.window import Window
from backfill_assets.writing import Select
from backfill_assets_tests.warehouses import Warehouse, at

SALES = Table("mart.fct_sales", SliceColumn("sale_date", "date"), unique_key=("sale_id",))
ON_THE_EDGES = {
    1: "2026-05-11 23:59:59.999999",
    2: "2026-05-12 00:00:00",
    3: "2026-05-12 23:59:59.999999",
    4: "2026-05-13 00:00:00",
}
COLUMNS = "sale_id, CAST(event_at AS DATE) AS sale_date, note"


@pytest.fixture
def source(warehouse: Warehouse) -> Warehouse:
    """One sale on each side of either edge of 12 May, and an unconfirmed one within."""
    values = ", ".join(
        f"({n}, TIMESTAMPTZ '{when}+00', 'confirmed', 'it''s {n}')"
        for n, when in ON_THE_EDGES.items()
    )
    warehouse.execute(
        "CREATE SCHEMA staging",
        "CREATE TABLE staging.sales_raw (sale_id BIGINT, event_at TIMESTAMP WITH TIME ZONE, status VARCHAR, note VARCHAR)",
        f"INSERT INTO staging.sales_raw VALUES {values}, (5, TIMESTAMPTZ '2026-05-12 12:00:00+00', 'cancelled', '')",
    )
    return warehouse


SELECTS = {
    "with_on": Select(
        f"SELECT {COLUMNS} FROM staging.sales_raw WHERE status = 'confirmed'", on="event_at"
    ),
    "with_an_alias": Select(
        f"SELECT {COLUMNS} FROM staging.sales_raw AS r WHERE status = 'confirmed'", on="r.event_at"
    ),
    "with_an_or": Select(
        f"SELECT {COLUMNS} FROM staging.sales_raw WHERE status = 'confirmed' OR status = 'x'",
        on="event_at",
    ),
    "with_a_place": Select(
        f"WITH r AS (SELECT * FROM staging.sales_raw WHERE {{window}}) SELECT {COLUMNS} FROM r WHERE status = 'confirmed'",
        on="event_at",
    ),
    "without_on": Select(
        f"SELECT {COLUMNS} FROM staging.sales_raw WHERE status = 'confirmed' -- the lot\n"
    ),
    "with_a_semicolon": Select(
        f"SELECT {COLUMNS} FROM staging.sales_raw WHERE status = 'confirmed';\n", on="event_at"
    ),
}


@pytest.mark.parametrize("select", SELECTS.values(), ids=SELECTS)
def test_a_select_brings_the_rows_of_its_day_and_no_others(
    source: Warehouse, select: Select
) -> None:
    loads = [source.write(SALES, "2026-05-12", select) for _ in range(2)]
    assert source.rows("SELECT sale_id, note FROM mart.fct_sales ORDER BY 1") == [
        (2, "it's 2"),
        (3, "it's 3"),
    ]
    assert loads[0].checksum == loads[1].checksum
    assert [load.rows_before for load in loads] == [0, 2]


@pytest.mark.parametrize("select", SELECTS.values(), ids=SELECTS)
def test_three_days_one_by_one_are_what_they_are_together(
    source: Warehouse, select: Select
) -> None:
    for day in ("2026-05-13", "2026-05-11", "2026-05-12"):
        source.write(SALES, day, select)
    one_by_one = source.rows("SELECT sale_id, sale_date FROM mart.fct_sales ORDER BY 1")
    together = source.write(SALES, Window(at("2026-05-11 00:00"), at("2026-05-14 00:00")), select)
    assert (together.rows_before, together.rows_after) == (4, 4)
    assert source.rows("SELECT sale_id, sale_date FROM mart.fct_sales ORDER BY 1") == one_by_one


def test_a_group_by_and_an_order_by_keep_their_place(source: Warehouse) -> None:
    daily = Table("mart.daily", SliceColumn("sale_date", "date"))
    grouped = Select(
        "SELECT CAST(event_at AS DATE) AS sale_date, count(*) AS sales FROM staging.sales_raw"
        " GROUP BY CAST(event_at AS DATE) HAVING count(*) > 0 ORDER BY 1 LIMIT 10",
        on="event_at",
    )
    source.write(daily, "2026-05-12", grouped)
    assert source.rows("SELECT sales FROM mart.daily") == [(3,)]


def test_a_select_whose_rows_leave_the_window_is_refused(source: Warehouse) -> None:
    later = source.day_after("CAST(event_at AS DATE)")
    moved = Select(
        f"SELECT sale_id, {later} AS sale_date, note FROM staging.sales_raw", on="event_at"
    )
    with pytest.raises(BackfillError) as refused:
        source.write(Table("mart.m", SliceColumn("sale_date", "date")), "2026-05-12", moved)
    assert isinstance(refused.value, (BadRows, SchemaMismatch))
    assert source.columns("mart.m") is None


def test_a_select_without_rows_is_an_empty_slice(source: Warehouse) -> None:
    with pytest.raises(EmptySlice):
        source.write(SALES, "2026-05-20", SELECTS["with_on"])


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM staging.nowhere",
        "SELECT nothing FROM staging.sales_raw",
        "SELECT * FROM nowhere.sales_raw",
    ],
)
def test_a_select_that_names_what_is_not_there_says_so(source: Warehouse, sql: str) -> None:
    with pytest.raises(MissingTable, match="names something that is not there"):
        source.write(SALES, "2026-05-12", Select(sql, on="event_at"))


def test_a_select_that_cannot_be_read_is_told_what_to_write(source: Warehouse) -> None:
    with pytest.raises(BackfillError, match=r"\{window\}"):
        source.write(SALES, "2026-05-12", Select("SELECT sale_id FROM (SELECT", on="event_at"))


def test_nothing_of_a_select_is_left_behind(source: Warehouse) -> None:
    broken: Any = Select(f"SELECT {COLUMNS}, sale_id AS day FROM staging.sales_raw", on="event_at")
    source.write(SALES, "2026-05-12", SELECTS["with_on"])
    with pytest.raises(SchemaMismatch):
        source.write(SALES, "2026-05-12", broken)
    assert source.leftovers() == []


def test_a_select_compares_the_bare_column_so_that_an_index_serves_it(postgres: Warehouse) -> None:
    postgres.execute(
        "CREATE TABLE t (at timestamptz, id bigint)",
        "INSERT INTO t SELECT TIMESTAMPTZ '2020-01-01 00:00+00' + n * INTERVAL '1 hour', n FROM generate_series(1, 50000) AS n",
        "CREATE INDEX ON t (at)",
        "ANALYZE t",
    )
    from backfill_assets.engines.postgres import SPELLING
    from backfill_assets.slice import Slice

    table = Table("x", SliceColumn("at"))
    sql = Select("SELECT * FROM t", on="at").for_slice(
        SPELLING, Slice(table, Window.day("2024-02-29"))
    )
    plan = "\n".join(line for (line,) in postgres.rows(f"EXPLAIN {sql}"))
    assert "Index Cond" in plan
    assert "Seq Scan" not in plan
