"""Names of tables, and what they are the same as: every name can be made, and a table has one history by all of them."""

from __future__ import annotations

from datetime import date, datetime, timedelta, timezone

import pytest

from backfill_assets.errors import DeclarationError, StaleSource, WarehouseError
from backfill_assets.slice import Slice
from backfill_assets.table import SliceColumn, Table
from backfill_assets.window import Window
from backfill_assets_tests.warehouses import AUDIT, Warehouse

DAY = "2026-05-03"
COLUMN = SliceColumn("day", "date")
ROWS = {"day": [date(2026, 5, 3)], "said": ["hello"]}


@pytest.mark.parametrize(
    "name",
    [
        "time",
        "datetime",
        "relation",
        "self",
        "T",
        "Any",
        "Path",
        "session",
        "duckdb",
        "csv",
        "parquet",
        "json",
    ],
)
def test_a_table_may_be_called_like_a_variable_or_a_kind_of_file(
    warehouse: Warehouse, name: str
) -> None:
    warehouse.write(Table(name, COLUMN, schema="dim"), DAY, ROWS)
    warehouse.write(Table(name, COLUMN, schema="dim"), DAY, ROWS)
    assert warehouse.count(f'dim."{name}"') == 1


def own_database(warehouse: Warehouse) -> str:
    with warehouse.session() as session:
        return session.database


@pytest.mark.parametrize("first", ["with its database", "without"])
def test_a_table_named_with_and_without_its_database_is_one_table_and_keeps_its_newest_rows(
    warehouse: Warehouse, first: str
) -> None:
    bare = Table("t", COLUMN, schema="mart")
    full = Table("t", COLUMN, schema="mart", database=own_database(warehouse))
    newer, older = (full, bare) if first == "with its database" else (bare, full)
    read = datetime.now(timezone.utc)
    warehouse.write(newer, DAY, {**ROWS, "said": ["new"]}, backfill_id="b1")
    with pytest.raises(StaleSource, match="wrote it from a source read at"):
        warehouse.write(older, DAY, ROWS, source_read_at=read - timedelta(minutes=1))
    assert warehouse.rows("SELECT said FROM mart.t") == [("new",)]
    slice_ = Slice(older, Window.day(DAY))
    with warehouse.session() as session:
        assert AUDIT.was_loaded(session, slice_)
        assert AUDIT.last_of(session, slice_) is not None
        assert AUDIT.spent(session, backfills=["b1"], table=older).rows == 1
        assert AUDIT.written_by(session, ["a-run"], older)


@pytest.mark.only(
    "duckdb",
    "postgres",
    why="the stand-ins of others cannot tell a schema from a database of that name",
)
def test_a_schema_called_like_the_database_is_another_place(warehouse: Warehouse) -> None:
    plain = Table("t", COLUMN, schema=warehouse.engine().spelling.default_schema)
    other = Table("t", COLUMN, schema=own_database(warehouse))
    warehouse.write(other, DAY, ROWS)
    with warehouse.session() as session:
        assert AUDIT.was_loaded(session, Slice(other, Window.day(DAY)))
        assert not AUDIT.was_loaded(session, Slice(plain, Window.day(DAY)))


def test_a_table_may_be_made_by_its_full_name_in_a_schema_that_is_not_there(
    warehouse: Warehouse,
) -> None:
    full = Table("t", COLUMN, schema="new", database=own_database(warehouse))
    for _ in range(2):
        warehouse.write(full, DAY, ROWS)
    assert warehouse.count("new.t") == 1


@pytest.mark.but("snowflake", "bigquery", why="BigQuery writes tables of other projects")
def test_a_table_of_another_database_is_refused_in_a_sentence(warehouse: Warehouse) -> None:
    elsewhere = Table("t", COLUMN, schema="new", database="elsewhere")
    with pytest.raises(WarehouseError) as refused:
        warehouse.write(elsewhere, DAY, ROWS)
    assert "elsewhere" in str(refused.value)
    assert "syntax error" not in str(refused.value)


def test_a_database_without_a_schema_names_no_table() -> None:
    with pytest.raises(DeclarationError, match="names the database 'w' and no schema in it"):
        Table("t", COLUMN, database="w")


@pytest.mark.only(
    "duckdb",
    "postgres",
    why="the stand-ins of others cannot tell a schema from a database of that name",
)
def test_a_table_may_be_named_in_full_in_a_schema_called_like_the_database(
    warehouse: Warehouse,
) -> None:
    own = own_database(warehouse)
    for _ in range(2):
        warehouse.write(Table("t", COLUMN, schema=own, database=own), DAY, ROWS)
        warehouse.write(Table("t", COLUMN, schema=own), DAY, ROWS)
    assert warehouse.count(f"{own}.t") == 1
