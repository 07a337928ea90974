"""The window is put on the source's bare column by us, so that it cannot differ from the DELETE."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from backfill_assets.engines import Session, open_engine
from backfill_assets.errors import DeclarationError
from backfill_assets.slice import Slice
from backfill_assets.table import SliceColumn, Table
from backfill_assets.window import Window
from backfill_assets.writing import Select

DAY = Slice(Table("fct", SliceColumn("d", "date")), Window.day("2026-05-02"))
ROWS = """CREATE TABLE raw AS SELECT * FROM (VALUES
  (1, TIMESTAMPTZ '2026-05-01 23:59:59.999999+00', 'just_before'),
  (2, TIMESTAMPTZ '2026-05-02 00:00:00+00', 'on_the_first_edge'),
  (3, TIMESTAMPTZ '2026-05-02 23:59:59.999999+00', 'just_inside'),
  (4, TIMESTAMPTZ '2026-05-03 00:00:00+00', 'on_the_last_edge'),
  (5, NULL, 'at_no_time')
) AS rows(id, event_at, name)"""
AS_DATE = "CAST(event_at AT TIME ZONE 'UTC' AS DATE) AS d"


@pytest.fixture
def session(tmp_path: Path) -> Iterator[Session]:
    with open_engine(f"duckdb:///{tmp_path}/w.duckdb").session() as session:
        session.execute(ROWS)
        yield session


@pytest.mark.parametrize(
    "select",
    [
        Select(f"SELECT id, {AS_DATE} FROM raw", on="event_at"),
        Select(f"SELECT id, {AS_DATE} FROM raw"),
        Select(f"SELECT r.id, {AS_DATE} FROM raw AS r", on="r.event_at"),
        Select(f"SELECT id, {AS_DATE} FROM raw WHERE {{window}}", on="event_at"),
        Select(f"SELECT id, {AS_DATE} FROM raw WHERE name <> 'x' OR id = 4", on="event_at"),
        Select(f"SELECT id, {AS_DATE} FROM raw;  ", on="event_at"),
        Select(f"SELECT id, {AS_DATE} FROM raw -- and that is all", on="event_at"),
        Select(f"SELECT id, {AS_DATE} FROM raw -- and that is all"),
        Select(f"WITH r AS (SELECT * FROM raw) SELECT id, {AS_DATE} FROM r", on="event_at"),
        Select(
            f"WITH r AS (SELECT * FROM raw WHERE {{window}}) SELECT id, {AS_DATE} FROM r",
            on="event_at",
        ),
        Select(
            f"SELECT id, {AS_DATE} FROM raw WHERE {{window}} AND id < 3"
            f" UNION ALL SELECT id, {AS_DATE} FROM raw WHERE {{window}} AND id >= 3",
            on="event_at",
        ),
        Select(f"SELECT id, {AS_DATE}, {{'a': id}} AS s FROM raw", on="event_at"),
        Select(f"SELECT id, {AS_DATE}, count(*) AS n FROM raw GROUP BY 1, 2", on="event_at"),
        Select(
            f"SELECT id, {AS_DATE} FROM raw QUALIFY row_number() OVER (PARTITION BY id) = 1",
            on="event_at",
        ),
    ],
)
def test_a_query_yields_the_rows_of_its_day_and_no_others(session: Session, select: Select) -> None:
    found = session.fetch(
        f"SELECT id FROM ({select.for_slice(session.spelling, DAY)}) AS q ORDER BY id"
    )
    assert found == [(2,), (3,)]


def test_the_condition_reaches_the_scan_of_the_source(session: Session) -> None:
    sql = Select(f"SELECT id, {AS_DATE} FROM raw", on="event_at").for_slice(session.spelling, DAY)
    plan = session.fetch(f"EXPLAIN {sql}")[0][1]
    scan = plan[plan.index("SEQ_SCAN") :]
    assert "event_at>=" in scan.replace(" ", "")


def test_the_whole_table_is_the_query_as_it_stands(session: Session) -> None:
    whole = Slice(Table("fct"))
    for sql in ("SELECT id FROM raw", "SELECT id FROM raw WHERE {window}"):
        select = Select(sql, on="event_at")
        assert len(session.fetch(select.for_slice(session.spelling, whole))) == 5


def test_a_static_dimension_cuts_the_result(session: Session) -> None:
    table = Table("fct", SliceColumn("d", "date"), dimensions=("name",))
    one = Slice(table, Window.day("2026-05-02"), (("name", "just_inside"),))
    select = Select(f"SELECT id, name, {AS_DATE} FROM raw", on="event_at")
    assert session.fetch(f"SELECT id FROM ({select.for_slice(session.spelling, one)}) AS q") == [
        (3,)
    ]


def test_a_source_of_another_kind_is_compared_as_it_holds_time(session: Session) -> None:
    session.execute(
        "CREATE TABLE by_number AS SELECT id, CAST(strftime(event_at, '%Y%m%d') AS INTEGER) AS ymd FROM raw"
    )
    select = Select("SELECT id FROM by_number", on="ymd", on_kind="int_yyyymmdd")
    assert session.fetch(select.for_slice(session.spelling, DAY)) == [(2,), (3,)]


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT 1 UNION SELECT 2",
        "DELETE FROM raw",
        "SELECT 1; SELECT 2",
        "not a query",
    ],
)
def test_what_the_window_cannot_be_added_to_is_refused_with_the_way_out(
    session: Session, sql: str
) -> None:
    with pytest.raises(DeclarationError, match=r"Write \{window\}"):
        Select(sql, on="event_at").for_slice(session.spelling, DAY)


def test_a_place_for_the_window_needs_the_column_to_compare() -> None:
    with pytest.raises(DeclarationError, match="without naming"):
        Select("SELECT 1 WHERE {window}")


def test_an_unknown_kind_is_refused_when_the_query_is_written() -> None:
    with pytest.raises(DeclarationError, match="cannot be of kind"):
        Select("SELECT 1", on="t", on_kind="epoch")  # type: ignore[arg-type]
