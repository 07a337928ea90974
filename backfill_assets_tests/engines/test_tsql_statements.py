"""Every statement that SQL Server, a dedicated pool and a Warehouse of Fabric are sent, word by word: `golden/*.sql`.

The files are for eyes: a change of them is read beside Microsoft's documentation before it is kept. Whoever has read it
writes them anew with `python -m backfill_assets_tests.engines.test_tsql_statements`.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable
from datetime import date, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from backfill_assets.checks.verdicts import verdicts
from backfill_assets.errors import SliceBusy
from backfill_assets.expectations import RowCount, Source, Totals
from backfill_assets.slice import Slice
from backfill_assets.table import SliceColumn, Table
from backfill_assets.window import UTC, Window
from backfill_assets.writing import Select
from backfill_assets_tests.interruptions import after_statement
from backfill_assets_tests.tsql_warehouse import TSqlWarehouse
from backfill_assets_tests.warehouses import AUDIT

KINDS = ("sqlserver", "synapse", "fabric")
GOLDEN = Path(__file__).parent / "golden"
DAY = date(2026, 5, 12)
SALES = Table("mart.fct_sales", SliceColumn("sold_at"), unique_key=("id",))
CHECKED = Table(
    "mart.fct_sales",
    SliceColumn("sold_at"),
    unique_key=("id",),
    source=Source("mart.src", on="sold_at"),
    expects=(RowCount(tolerance=0), Totals(("price",), tolerance=0)),
)
# where a line of the files ends: one blank each, and nothing else is changed
_CLAUSE = re.compile(
    r" (?=(?:FROM|WHERE|JOIN|GROUP BY|HAVING|ORDER BY|AND|SELECT|VALUES|DECLARE|WHILE|EXEC|SET|IF SCHEMA_ID|CREATE TABLE"
    r"|CREATE INDEX|DROP TABLE|count\(CASE|coalesce\(CAST)\b)"
)
_NOON = datetime(2026, 5, 12, 12, tzinfo=UTC)
ROWS = {
    "sold_at": pa.array([_NOON] * 2, pa.timestamp("us", "UTC")),
    "id": pa.array([1, 2], pa.int64()),
    "price": pa.array([1.5, None], pa.float64()),
    "note": ["it's", "ok"],
}
QUERY = Select("WITH s AS (SELECT * FROM mart.src) SELECT * FROM s", on="sold_at")


def spoken(warehouse: TSqlWarehouse) -> str:
    """Return what is sent for a first load, a rewrite by a frame and by a query, a look by the checks, and a conflict."""
    parts: list[str] = []

    def chapter(title: str, act: Callable[[], Any]) -> None:
        warehouse.server.sent.clear()
        act()
        parts.append(f"-- {title}\n\n" + "\n\n".join(map(_plain, warehouse.server.sent)))

    chapter(
        "the first slice: the table is made", lambda: warehouse.write(SALES, "2026-05-12", ROWS)
    )
    with warehouse.session(who="run a-run") as session:
        warehouse.write(SALES, "2026-05-12", ROWS, session=session)
        chapter(
            "a slice of a table that is there, in a session that has begun",
            lambda: warehouse.write(SALES, "2026-05-12", ROWS, session=session),
        )
        session.stage_select("src", "SELECT * FROM mart.fct_sales")
        _rename(warehouse)
        chapter(
            "the same from a query",
            lambda: warehouse.write(SALES, "2026-05-12", QUERY, session=session),
        )
    slices = [
        Slice(CHECKED, Window.day(day), partition=day) for day in ("2026-05-11", "2026-05-12")
    ]
    with warehouse.session(read_only=True) as session:
        chapter(
            "two slices looked at by the checks",
            lambda: list(verdicts(session, CHECKED, slices, AUDIT, _NOON, None)),
        )
    chapter("a slice that somebody else has", lambda: _conflict(warehouse))
    return "\n\n\n".join(parts) + "\n"


def _rename(warehouse: TSqlWarehouse) -> None:
    duck = warehouse.server.root
    duck.execute('CREATE TABLE "warehouse".mart.src AS SELECT * FROM "warehouse".mart.fct_sales')


def _conflict(warehouse: TSqlWarehouse) -> None:
    def second() -> None:
        with contextlib.suppress(SliceBusy):
            with warehouse.session(who="run second", lock_wait=0.2) as session:
                warehouse.write(SALES, "2026-05-12", ROWS, session=session, run_id="second")

    with warehouse.session(who="run first") as session:
        warehouse.write(SALES, "2026-05-12", ROWS, session=session)
        after_statement(session, "DELETE", lambda: (warehouse.server.sent.clear(), second()))
        warehouse.write(SALES, "2026-05-12", ROWS, session=session)


def _plain(sql: str) -> str:
    """Return a statement without what differs from one run to the next."""
    sql = re.sub(r"backfill_stage_[0-9a-f]{32}", "backfill_stage_1", sql)
    sql = re.sub(r"'[0-9a-f]{32}'", "'audit-id'", sql)
    sql = re.sub(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d+\+00:00", "2026-06-01 12:00:00+00:00", sql)
    sql = re.sub(r"\d+\.\d+(?:e-?\d+)?, NULL, (?=NULL|N?'\{)", "0.1, NULL, ", sql)
    return _CLAUSE.sub("\n    ", sql)


@pytest.mark.parametrize("kind", KINDS)
def test_these_statements_are_sent_and_no_others(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = spoken(TSqlWarehouse.fresh(kind, monkeypatch))
    assert said == (GOLDEN / f"{kind}.sql").read_text()


@pytest.mark.parametrize("kind", KINDS)
def test_a_slice_takes_as_many_statements_as_its_page_says(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    warehouse, counts = TSqlWarehouse.fresh(kind, monkeypatch), list[int]()
    plain = Table("mart.fct_sales", SliceColumn("sold_at"))
    warehouse.write(plain, "2026-05-12", ROWS)
    _rename(warehouse)
    query = Select("SELECT * FROM mart.src")
    with warehouse.session() as session:
        for table, rows in ((plain, ROWS), (plain, ROWS), (plain, query), (SALES, ROWS)):
            warehouse.server.sent.clear()
            warehouse.write(table, "2026-05-12", rows, session=session)
            counts.append(len(warehouse.server.sent))
    first, frame, select, keyed = counts
    page = (Path(__file__).parents[2] / "docs" / "engines" / f"{kind}.md").read_text()
    (said,) = re.findall(r"\*\*Statements for a slice\*\*.*?\n\n", page, re.DOTALL)
    assert keyed == frame + 1
    assert re.findall(r"\d+", said) == [str(frame), str(select), str(first - frame)]


if __name__ == "__main__":
    for name in KINDS:
        with pytest.MonkeyPatch.context() as patch:
            (GOLDEN / f"{name}.sql").write_text(spoken(TSqlWarehouse.fresh(name, patch)))
