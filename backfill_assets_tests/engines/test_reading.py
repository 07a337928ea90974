"""A session that was opened to read reads, whatever it is asked by whichever of its methods."""

from __future__ import annotations

import pytest

from backfill_assets.engines.reading import refuse_write
from backfill_assets.errors import BackfillError, MissingRight
from backfill_assets_tests.warehouses import Warehouse

DIALECTS = ("tsql", "snowflake", "bigquery", "databricks")
READ = {
    "a query": "SELECT 1",
    "a word in a comment": "/* DROP */ SELECT 1 -- DELETE",
    "a word in a text": "SELECT 'DELETE FROM t' AS a",
    "a WITH": "WITH a AS (SELECT 1 AS n) SELECT * FROM a",
    "a column's name": "SELECT t.update FROM t",
    "a function": "SELECT insert('a', 1, 2, 'b')",
    "parentheses": "(SELECT 1) UNION ALL SELECT 2",
    "a part of a name": "SELECT last_update, into_stock FROM t",
}
WRITE = {
    "nothing": "",
    "rows": "DELETE FROM t",
    "behind a comment": "/* SELECT */ DELETE FROM t",
    "behind a WITH": "WITH a AS (SELECT 1 AS n) DELETE FROM a",
    "behind a query": "SELECT 1; DROP TABLE t",
    "a table from a query": "SELECT * INTO x FROM t",
    "a procedure": "EXEC f",
    "a statement in a text": "SELECT 1; EXEC('DELETE FROM t')",
    "a transaction": "BEGIN TRANSACTION",
}


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("sql", READ.values(), ids=READ)
def test_what_only_reads_is_let_through(dialect: str, sql: str) -> None:
    refuse_write(dialect, sql)


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("sql", WRITE.values(), ids=WRITE)
def test_what_writes_or_may_is_refused(dialect: str, sql: str) -> None:
    with pytest.raises(MissingRight, match="the session was opened to read"):
        refuse_write(dialect, sql)


def test_a_transaction_may_be_begun_to_read_in() -> None:
    refuse_write("tsql", "BEGIN TRANSACTION", transactions=True)


@pytest.mark.parametrize("ask", ["fetch", "fetch_arrow", "execute"])
def test_a_session_opened_to_read_deletes_nothing_however_it_is_asked(
    warehouse: Warehouse, ask: str
) -> None:
    warehouse.execute("CREATE TABLE kept AS SELECT 1 AS id")
    with warehouse.session(read_only=True) as session:
        with pytest.raises(BackfillError):
            getattr(session, ask)(warehouse.spoken("DELETE FROM kept WHERE id = 1"))
    assert warehouse.count("kept") == 1
