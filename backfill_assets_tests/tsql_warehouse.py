"""A warehouse of a server that `tsql_server` plays; what tests say in PostgreSQL's SQL is said in T-SQL."""

from __future__ import annotations

import contextlib
import re
import uuid
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import pytest

from backfill_assets.engines import Session
from backfill_assets.errors import BackfillError
from backfill_assets_tests import tsql_server
from backfill_assets_tests.tsql_server import SERVERS, Server
from backfill_assets_tests.warehouses import Warehouse

_SERIES = re.compile(r"generate_series\((\d+), (\d+)\) AS (?:\w+\()?(\w+)\)?")
_MARKED = re.compile(r"series_(\d+)_(\d+) AS (\w+)")


@dataclass(frozen=True)
class TSqlWarehouse(Warehouse):
    """One database; schemas are dbo where a test names none."""

    @classmethod
    def fresh(cls, kind: str, monkeypatch: pytest.MonkeyPatch, options: str = "") -> TSqlWarehouse:
        import mssql_python

        monkeypatch.setattr(mssql_python, "connect", tsql_server.connect)
        host = f"h{uuid.uuid4().hex[:12]}"
        # gone with its test: hundreds of databases would fill the process that runs them
        monkeypatch.setitem(SERVERS, host, Server(kind))
        return cls(f"{kind}://ana:s3cret@{host}/warehouse{options}")

    @property
    def keeps_lengths(self) -> bool:
        return True

    @property
    def keeps_nan(self) -> bool:
        return False

    def day_after(self, day: str) -> str:
        return f"DATEADD(day, 1, {day})"

    def lacks(self, kind: str) -> str | None:
        return "sqlglot takes real for a float" if kind == "REAL" else None

    @property
    def server(self) -> Server:
        return SERVERS[self.url.partition("@")[2].partition("/")[0]]

    def execute(self, *statements: str) -> None:
        super().execute(*map(translated, statements))

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        return super().rows(translated(sql))

    def columns(self, relation: str) -> dict[str, str] | None:
        return super().columns(_relation(relation))

    def seen_from_outside(self, session: Session, sql: str) -> list[tuple[Any, ...]]:
        return self.rows(sql)

    def somebody_waits(self) -> bool:
        return self.server.locks.waiting > 0

    def quoted(self, name: str) -> str:
        return f'"{name}"'  # a test's SQL is PostgreSQL's until it is `spoken`

    def spoken(self, sql: str) -> str:
        return translated(sql)

    def type_of(self, kind: str) -> str:
        from sqlglot import exp

        from backfill_assets_tests.tsql_dialect import canonical

        return canonical(exp.DataType.build(kind, dialect="postgres").sql(dialect="tsql"))

    def leftovers(self) -> list[str]:
        found = self.server.root.execute(
            "SELECT schema_name, table_name FROM duckdb_tables() WHERE table_name LIKE 'backfill_stage%'"
        ).fetchall()
        return [".".join(map(str, stage)) for stage in found]


@dataclass(frozen=True)
class LiveTSqlWarehouse(TSqlWarehouse):
    """A database of a real server, that holds nothing before a test and nothing after it."""

    @classmethod
    def at(cls, url: str) -> LiveTSqlWarehouse:
        made = cls(url)
        found = made._objects()
        assert not found, f"the database of the tests has to be empty, and holds {found[:5]}"
        return made

    def empty(self) -> None:
        """Drop every table, view and schema that the tests have made; nothing else was there."""
        with self.session() as session:
            for _ in range(2):  # a view may stand on another
                for schema, name, kind in self._objects():
                    word = "VIEW" if kind == "V " else "TABLE"
                    with contextlib.suppress(BackfillError):
                        session.execute(f"DROP {word} [{schema}].[{name.replace(']', ']]')}]")
            for (schema,) in session.fetch(
                "SELECT name FROM sys.schemas WHERE schema_id BETWEEN 5 AND 16383"
            ):
                with contextlib.suppress(BackfillError):
                    session.execute(f"DROP SCHEMA [{schema.replace(']', ']]')}]")

    def _objects(self) -> list[tuple[str, str, str]]:
        with self.session(read_only=True) as session:
            found = session.fetch(
                "SELECT SCHEMA_NAME(schema_id), name, type FROM sys.objects"
                " WHERE type IN ('U', 'V') AND is_ms_shipped = 0"
            )
        return [(str(schema), str(name), str(kind)) for schema, name, kind in found]

    def somebody_waits(self) -> bool:
        with self.session(read_only=True) as session:
            waiting = "SELECT count(*) FROM sys.dm_tran_locks WHERE request_status = 'WAIT'"
            return session.fetch(waiting)[0][0] > 0

    def leftovers(self) -> list[str]:
        return [
            f"{schema}.{name}"
            for schema, name, _ in self._objects()
            if name.startswith("backfill_stage")
        ]


@lru_cache(maxsize=512)
def translated(sql: str) -> str:
    """Return what is meant, in T-SQL."""
    import sqlglot
    from sqlglot import exp

    if sql.startswith("CREATE INDEX"):
        return sql
    marked = _SERIES.sub(r"series_\1_\2 AS \3", sql)
    tree = sqlglot.parse_one(marked, read="postgres")
    for kind in list(tree.find_all(exp.DataType)):
        if kind.this in exp.DataType.TEXT_TYPES and not kind.expressions:  # one character, in T-SQL
            kind.replace(exp.DataType.build("nvarchar(4000)", dialect="tsql"))
    for select in list(tree.find_all(exp.Select)):
        for value in select.expressions:
            if isinstance(value, exp.Predicate):  # a condition is no value there
                value.replace(exp.case().when(value.copy(), "1").else_("0"))
    said = tree.sql(dialect="tsql")
    return _MARKED.sub(r"GENERATE_SERIES(\1, \2) AS \3(\3)", said)


def _relation(sql: str) -> str:
    from sqlglot import exp

    return exp.to_table(sql, dialect="postgres").sql(dialect="tsql", identify=True)
