"""Which views readers can be moved by: what each of them does, and why some are refused with nothing changed."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest

from backfill_assets.engines import open_engine
from backfill_assets.errors import DeclarationError, Refused, WriteFailed
from backfill_assets.strategies.cutover.views import reading
from backfill_assets.strategies.dual_write import FileSide, Side
from backfill_assets.table import Table
from backfill_assets_tests.interruptions import after_statement
from backfill_assets_tests.strategies.cutover.conftest import (
    NEW,
    OLD,
    ORDERS,
    SLICE,
    VIEW,
    Operator,
    make,
)
from backfill_assets_tests.warehouses import Warehouse

TOLD = {
    "no_view": ("SELECT 1", "there is no such view"),
    "a_table": (f"CREATE TABLE {VIEW} AS SELECT * FROM {OLD}", "it is a table and no view"),
    "rows_left_out": (f"CREATE VIEW {VIEW} AS SELECT * FROM {OLD} WHERE amount > 0", "a clause beside SELECT and FROM"),
    "rows_once": (f"CREATE VIEW {VIEW} AS SELECT DISTINCT order_id FROM {OLD}", "a clause beside SELECT and FROM"),
    "two_tables": (
        f"CREATE VIEW {VIEW} AS SELECT a.* FROM {OLD} AS a JOIN {NEW} AS b ON a.order_id = b.order_id",
        "a clause beside SELECT and FROM|reads no table by its name",
    ),
    "both_together": (
        f"CREATE VIEW {VIEW} AS SELECT order_id FROM {OLD} UNION ALL SELECT order_id FROM {NEW}",
        "is no single SELECT",
    ),
    "computed": (f"CREATE VIEW {VIEW} AS SELECT order_id, amount * 2 AS amount FROM {OLD}", "computes a column"),
    "cut_off": (
        f"CREATE VIEW {VIEW} AS SELECT order_id, CAST(CAST(amount AS INT) AS DECIMAL(10, 2)) AS amount FROM {OLD}",
        "computes a column",
    ),
    "another_table": (
        f"CREATE TABLE analytics.third AS SELECT * FROM {OLD}; CREATE VIEW {VIEW} AS SELECT * FROM analytics.third",
        f"it reads analytics.third, which is neither {OLD} nor {NEW}",
    ),
    "no_table": (f"CREATE VIEW {VIEW} AS SELECT order_id FROM (SELECT * FROM {OLD}) AS t", "reads no table by its name"),
}  # fmt: skip


@pytest.mark.parametrize("case", TOLD)
def test_a_view_that_does_more_than_name_columns_of_one_table_is_left_alone(
    warehouse: Warehouse, case: str
) -> None:
    view, why = TOLD[case]
    make(warehouse, view)
    ann = Operator(warehouse)
    with warehouse.session() as session:
        before = session.columns_of(VIEW)
    with pytest.raises(Refused, match=why):
        ann.cut_over()
    assert any(re.search(why, one) for one in ann.cut_over(dry_run=True).refusals)
    assert ann.status().state == "dual_writing"
    assert warehouse.columns(VIEW) == before
    assert ann.log == []


def test_names_and_order_of_the_views_own_columns_stay(warehouse: Warehouse) -> None:
    make(warehouse, f"CREATE VIEW {VIEW} AS SELECT source, amount AS total, order_id FROM {OLD}")
    ann = Operator(warehouse)
    ann.cut_over()
    assert list(warehouse.columns(VIEW) or {}) == ["source", "total", "order_id"]
    assert ann.reads == {"new"}
    ann.roll_back()
    assert list(warehouse.columns(VIEW) or {}) == ["source", "total", "order_id"]
    assert [
        str(n) for _, n in warehouse.rows(f"SELECT order_id, total FROM {VIEW} ORDER BY 1")
    ] == ["1.50", "2.50"]


def test_a_column_list_of_the_view_gives_the_names(warehouse: Warehouse) -> None:
    make(warehouse, f"CREATE VIEW {VIEW} (order_id, source) AS SELECT order_id, source FROM {OLD}")
    ann = Operator(warehouse)
    ann.cut_over()
    assert ann.reads == {"new"}


def test_a_new_table_that_lacks_a_column_that_readers_know_is_refused(warehouse: Warehouse) -> None:
    make(warehouse)
    warehouse.execute(f"ALTER TABLE {NEW} DROP COLUMN amount")
    ann = Operator(warehouse)
    with pytest.raises(Refused, match=f"{NEW} lacks amount, which {VIEW} shows"):
        ann.cut_over()
    assert (ann.reads, ann.log) == ({"old"}, [])


def test_a_missing_new_table_and_a_missing_view_are_told_together(warehouse: Warehouse) -> None:
    warehouse.execute("CREATE SCHEMA analytics")
    tried = Operator(warehouse).cut_over(dry_run=True)
    assert tried.refusals[0] == f"there is no table {NEW}"
    assert "there is no such view" in tried.refusals[1]


@pytest.mark.parametrize(
    "changed",
    [
        {"view": None},
        {"old": Side(Table(OLD, SLICE), "duckdb:///elsewhere.duckdb")},
        {"old": FileSide(Table(OLD, SLICE), files="/lake/*.parquet")},
    ],
)
def test_without_a_view_over_two_tables_of_one_warehouse_nobody_can_be_moved(
    duckdb: Warehouse, changed: dict[str, Any]
) -> None:
    make(duckdb)
    with pytest.raises(DeclarationError, match="declares no view|are not tables of one warehouse"):
        Operator(duckdb, replace(ORDERS, **changed)).cut_over(dry_run=True)


def test_a_view_that_shows_other_rows_than_the_new_table_is_flipped_back(
    warehouse: Warehouse,
) -> None:
    make(warehouse)
    # a value that the readers' type cannot hold: nobody sees that before the view is read
    warehouse.execute(
        f"ALTER TABLE {NEW} ALTER COLUMN amount TYPE DECIMAL(18, 4)",
        f"UPDATE {NEW} SET amount = 123456789012.5 WHERE order_id = 2",
    )
    ann = Operator(warehouse)
    with pytest.raises(
        WriteFailed,
        match="readers read old again, as before: after the view had been replaced, it cannot be read",
    ):
        ann.cut_over()
    assert ann.reads == {"old"}
    assert ann.log == ["cutting_over", "cut_over", "rolling_back", "dual_writing"]
    assert "did not show what it should" in str(ann.status().reason)


@pytest.mark.parametrize(
    ("url", "definition", "reads", "columns"),
    [
        ("snowflake://u:p@a/db", "create or replace secure view A.V copy grants as select * from A.OLD", "A.OLD", {}),
        ("bigquery://p/d", "SELECT `x` AS `y` FROM `p`.`d`.`old`", "p.d.old", {"y": "x"}),
        ("databricks://token:x@h/c?http_path=/x", "SELECT CAST(x AS STRING) AS x FROM c.d.old", "c.d.old", {"x": "x"}),
        ("sqlserver://u:p@h/db", "CREATE VIEW [d].[v] WITH SCHEMABINDING AS SELECT [x] FROM [d].[old]", "d.old", {"x": "x"}),
        ("synapse://u:p@h/db", "ALTER VIEW d.v AS SELECT x, [y z] FROM old;", "d.old", {"x": "x", "y z": "y z"}),
        ("fabric://u:p@h/db", "create view d.v (a, b) as select x, y from d.old", "d.old", {"a": "x", "b": "y"}),
    ],
)  # fmt: skip
def test_the_definition_of_every_warehouse_is_understood(
    url: str, definition: str, reads: str, columns: dict[str, str]
) -> None:
    table, sources = reading(open_engine(url).spelling, definition, Table("d.v"))
    assert (table.qualified, sources) == (reads, columns)


@pytest.mark.parametrize("definition", ["SELECT x FROM old LIMIT 5", "WITH a AS (SELECT 1) SELECT x FROM old", "SELECT TRY_CAST(x AS INT) AS x FROM old", "SELECT * EXCLUDE (y) FROM old", "SELECT x FROM old AS t (x)", "nonsense ("])  # fmt: skip
def test_what_would_be_lost_is_seen(duckdb: Warehouse, definition: str) -> None:
    with pytest.raises(
        ValueError, match="has a clause|computes|in a way of its own|cannot be read|is no single"
    ):
        reading(duckdb.engine().spelling, definition, Table("d.v"))


def test_two_that_move_readers_at_once_take_turns(warehouse: Warehouse) -> None:
    make(warehouse)
    ann, ben = Operator(warehouse), Operator(warehouse)
    if not warehouse.is_postgres:
        # a file is one session's at a time
        with warehouse.session() as session:
            ann.cut_over(session=session)
        ben.cut_over()
    else:
        with warehouse.session() as first, warehouse.session() as second:
            # ben begins right after ann's intent was committed
            left = [1]
            after_statement(
                first,
                "COMMIT",
                lambda: left and left.pop() and ben.cut_over(session=second, run_id="run-2"),
            )
            ann.cut_over(session=first)
    assert ann.reads == {"new"}
    assert ann.log[-1] == "cut_over"
    assert ann.log.count("cut_over") == 1
    assert "Nothing is left to do" in (ann.told[-1] + ben.told[-1])
