"""A Databricks workspace for the tests: Databricks' SQL carried out by DuckDB, behind the connector's own interface.

What it keeps of the service, by rules of its own: each statement is committed by itself, and of two that change one row
the second is refused as Delta refuses it; `REPLACE WHERE` removes and inserts in one commit, by place, and refuses a
row outside its condition; a table has versions that can be read. What DuckDB refuses is said in the service's classes.
"""

from __future__ import annotations

import functools
import re
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import duckdb
import pytest
from databricks import sql as connector
from databricks.sql.exc import RequestError, ServerOperationError
from sqlglot.errors import SqlglotError

from backfill_assets.engines import databricks_session
from backfill_assets_tests.warehouses import Warehouse

_COMMENT = re.compile(r"\s*/\* (\{.*?\}) \*/$", re.DOTALL)
_TYPES = {
    "VARCHAR": "string",
    "INTEGER": "int",
    "TIMESTAMP": "timestamp_ntz",
    "TIMESTAMP WITH TIME ZONE": "timestamp",
    "BLOB": "binary",
    "HUGEINT": "bigint",
    '"NULL"': "string",
}
_SERIES = re.compile(r"generate_series\((\d+), (\d+)\) AS (?:\w+\()?(\w+)\)?")
_MARKED = re.compile(r"series_(\d+)_(\d+) AS (\w+)")


class Killed(BaseException):
    """The process is no more: nothing that comes after reaches the warehouse."""


@dataclass
class Workspace:
    """One catalog, whose tables every connection of this process sees."""

    sent: list[str] = field(default_factory=list[str])
    tags: list[str] = field(default_factory=list[str])
    logins: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    conflicts: list[str] = field(default_factory=list[str])
    # called with the connection and the statement: before it is carried out, after it was and before anybody hears
    before: list[Callable[[Connection, str], None]] = field(default_factory=list)
    after: list[Callable[[Connection, str], None]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.database = duckdb.connect(":memory:")
        self.database.execute("ATTACH ':memory:' AS warehouse")
        self.database.execute("CREATE SCHEMA warehouse.public")
        self.database.execute("CREATE SCHEMA warehouse.versions_of_tables")
        self.database.execute("USE warehouse.public")
        self.database.execute("CREATE MACRO warehouse.public.current_metastore() AS 'metastore'")
        # from hexadecimal to decimal is all that is asked of it
        self.database.execute(
            "CREATE MACRO warehouse.public.conv(digits, wide, narrow) AS CAST(CAST('0x' || digits AS BIGINT) AS VARCHAR)"
        )
        self.versions: dict[str, int] = {}
        self.lock = threading.Lock()
        # who reads a table's history is in nobody's way there; here he keeps the version for later
        self.keeping = threading.Lock()

    def connect(self, **arguments: Any) -> Connection:
        self.logins.append(arguments)
        return Connection(self)

    def changed(self, relation: str) -> None:
        with self.lock:
            self.versions[relation] = self.versions.get(relation, 0) + 1

    def version(self, relation: str) -> int:
        return self.versions.get(relation, 0)


class Connection:
    """What `databricks.sql.connect` returns."""

    def __init__(self, workspace: Workspace) -> None:
        self.workspace = workspace
        self.is_dead = False
        self.duck = workspace.database.cursor()
        self.duck.execute("USE warehouse.public")
        self.duck.execute("SET TimeZone = 'UTC'")

    def cursor(self) -> Cursor:
        return Cursor(self)

    def close(self) -> None:
        self.duck.close()


class Cursor:
    """A cursor as the connector has it: results of any kind, and counts as a row of the result."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._duck = connection.duck.cursor()
        self._duck.execute("USE warehouse.public")
        self._duck.execute("SET TimeZone = 'UTC'")
        self._rows: list[tuple[Any, ...]] | None = None
        self.description: list[tuple[Any, ...]] | None = None

    def execute(self, statement: str) -> Cursor:
        workspace = self._connection.workspace
        tag = _COMMENT.search(statement)
        plain = _COMMENT.sub("", statement)
        if self._connection.is_dead:
            raise Killed
        for act in list(workspace.before):
            act(self._connection, plain)
        workspace.sent.append(plain)
        workspace.tags.append(tag.group(1) if tag else "")
        try:
            self._carry_out(plain)
        except SqlglotError as error:
            raise ServerOperationError(f"[PARSE_SYNTAX_ERROR] {error} SQLSTATE: 42601") from error
        except duckdb.Error as error:
            raise self._said(error, plain) from error
        for act in list(workspace.after):
            act(self._connection, plain)
        return self

    def _carry_out(self, sql: str) -> None:
        word = sql.split(None, 1)[0].upper()
        if sql.startswith("DESCRIBE QUERY "):
            found = self._duck.execute(f"DESCRIBE {duck_sql(sql[15:])}").fetchall()
            self._give(
                [(name, _spark_type(kind), None) for name, kind, *_ in found],
                "col_name", "data_type", "comment",
            )  # fmt: skip
        elif sql.startswith("DESCRIBE HISTORY "):
            relation = sql.removeprefix("DESCRIBE HISTORY ").removesuffix(" LIMIT 1")
            self._give([(self._remembered(relation),)], "version")
        elif sql.startswith("SHOW TABLES IN "):
            self._show(sql)
        elif word == "INSERT" and (" REPLACE WHERE " in sql or sql.startswith("INSERT OVERWRITE ")):
            self._replace(sql)
        else:
            self._plain(sql, word)

    def _plain(self, sql: str, word: str) -> None:
        self._duck.execute(duck_sql(sql))
        if word in ("INSERT", "UPDATE", "DELETE"):
            count = self._duck.fetchone()
            self._give([(count[0] if count else 0,)], "num_affected_rows")
        if word not in ("SELECT", "WITH"):
            for relation in _targets(sql):
                self._connection.workspace.changed(relation)

    def _replace(self, sql: str) -> None:
        import sqlglot
        from sqlglot import exp

        tree: Any = _at_versions(sqlglot.parse_one(sql, read="databricks"))
        target = tree.this.sql(dialect="databricks")
        relation, where = _duck_of(tree.this), tree.args.get("where")
        query = _duck_of(tree.expression)
        condition = _duck_of(where) if where is not None else "TRUE"
        if isinstance(where, exp.Where):
            condition = _duck_of(where.this)
        columns = ", ".join(
            '"' + name.replace('"', '""') + '"'
            for name, *_ in self._duck.execute(f"DESCRIBE {relation}").fetchall()
        )
        self._duck.execute("BEGIN")
        try:
            self._duck.execute(
                f"CREATE OR REPLACE TEMP TABLE coming AS SELECT * FROM ({query}) AS q ({columns})"
            )
            outside = self._duck.execute(
                f"SELECT count(*) FROM coming WHERE NOT coalesce({condition}, FALSE)"
            ).fetchone()
            if outside and outside[0]:
                raise ServerOperationError(
                    "[DELTA_REPLACE_WHERE_MISMATCH] Written data does not conform to partial table overwrite condition"
                    " or constraint. SQLSTATE: 44000"
                )
            self._duck.execute(f"DELETE FROM {relation} WHERE {condition}")
            self._duck.execute(f"INSERT INTO {relation} SELECT * FROM coming")
            count = self._duck.fetchone()
            self._duck.execute("DROP TABLE coming")
            self._duck.execute("COMMIT")
        except BaseException:
            self._duck.execute("ROLLBACK")
            raise
        self._connection.workspace.changed(target)
        found = count[0] if count else 0
        self._give([(found, found)], "num_affected_rows", "num_inserted_rows")

    def _remembered(self, relation: str) -> int:
        """Return the version of a table, which can be read from now on."""
        workspace = self._connection.workspace
        with workspace.keeping:
            version = workspace.version(relation)
            self._duck.execute(
                f"CREATE OR REPLACE TABLE {_version(relation, version)} AS SELECT * FROM {duck_name(relation)}"
            )
        return version

    def _show(self, sql: str) -> None:
        schema, pattern = re.findall(r"IN `(.*)` LIKE '(.*)\*'", sql)[0]
        found = self._duck.execute(
            "SELECT table_schema, table_name, FALSE FROM information_schema.tables"
            f" WHERE table_catalog = 'warehouse' AND table_schema = '{schema}' AND starts_with(table_name, '{pattern}')"
        ).fetchall()
        if (
            not found
            and not self._duck.execute(
                f"SELECT 1 FROM information_schema.schemata WHERE catalog_name = 'warehouse' AND schema_name = '{schema}'"
            ).fetchall()
        ):
            raise ServerOperationError(f"[SCHEMA_NOT_FOUND] `{schema}` SQLSTATE: 42704")
        self._give(found, "database", "tableName", "isTemporary")

    def _give(self, rows: list[tuple[Any, ...]], *names: str) -> None:
        self._rows, self.description = rows, [(name, None) for name in names]

    def fetchone(self) -> tuple[Any, ...] | None:
        return self._rows[0] if self._rows else None

    def fetchall(self) -> list[tuple[Any, ...]]:
        return self._rows if self._rows is not None else self._duck.fetchall()

    def fetchall_arrow(self) -> Any:
        return self._duck.to_arrow_table()

    def cancel(self) -> None:
        pass

    def close(self) -> None:
        self._duck.close()

    def _said(self, error: duckdb.Error, sql: str) -> Exception:
        words = str(error).split("\n")[0]
        kinds: list[tuple[Any, str, str, str]] = [
            (duckdb.TransactionException, "", "DELTA_CONCURRENT_APPEND.ROW_LEVEL_CHANGES", "2D521"),
            (duckdb.CatalogException, "write-write conflict", "DELTA_CONCURRENT_APPEND", "2D521"),
            (duckdb.CatalogException, "already exists", "TABLE_OR_VIEW_ALREADY_EXISTS", "42P07"),
            (duckdb.CatalogException, "chema ", "SCHEMA_NOT_FOUND", "42704"),
            (duckdb.CatalogException, "", "TABLE_OR_VIEW_NOT_FOUND", "42P01"),
            (duckdb.BinderException, "", "UNRESOLVED_COLUMN.WITHOUT_SUGGESTION", "42703"),
            (duckdb.ConversionException, "", "CAST_INVALID_INPUT", "22018"),
            (duckdb.OutOfRangeException, "", "CAST_OVERFLOW", "22003"),
            (duckdb.ConstraintException, "", "DELTA_NOT_NULL_CONSTRAINT_VIOLATED", "23502"),
            (duckdb.ParserException, "", "PARSE_SYNTAX_ERROR", "42601"),
            (duckdb.InvalidInputException, "", "TABLE_OR_VIEW_NOT_FOUND", "42P01"),
            (duckdb.IOException, "", "TABLE_OR_VIEW_NOT_FOUND", "42P01"),
            (duckdb.Error, "", "INTERNAL_ERROR", "XX000"),
        ]
        name, state = next(
            (n, s) for kind, part, n, s in kinds if isinstance(error, kind) and part in words
        )
        if "with name" in words and "already exists" in words and sql.startswith("ALTER"):
            name = "FIELD_ALREADY_EXISTS"
        if state == "2D521":
            self._connection.workspace.conflicts.append(sql)
        return ServerOperationError(f"[{name}] {words} SQLSTATE: {state}")


def lost(words: str = "Connection reset by peer") -> RequestError:
    """Return what the connector raises where the network fails under a statement."""
    return RequestError(
        "Error during request to server", {"original-exception": words, "http-code": None}
    )


@functools.lru_cache(maxsize=2000)
def duck_sql(sql: str) -> str:
    """Return a statement as DuckDB has it."""
    import sqlglot

    said = _duck_of(_at_versions(sqlglot.parse_one(sql, read="databricks")))
    return (
        said.replace("ADD COLUMNS (", "ADD COLUMN ").removesuffix(")")
        if (said.startswith("ALTER TABLE") and "ADD COLUMNS (" in said)
        else said
    )


def _at_versions(tree: Any) -> Any:
    """Return a statement that reads what was remembered of a version where it names one."""
    from sqlglot import exp

    for table in tree.find_all(exp.Table):
        version = table.args.get("version")
        if version is not None:
            name = exp.table_(table.this, db=table.args.get("db")).sql(dialect="databricks")
            table.replace(
                exp.maybe_parse(
                    _version(name, version.expression.name), into=exp.Table, dialect="duckdb"
                )
            )
    return tree


def duck_name(relation: str) -> str:
    import sqlglot
    from sqlglot import exp

    return sqlglot.parse_one(relation, into=exp.Table, read="databricks").sql(dialect="duckdb")


def _duck_of(tree: Any) -> str:
    from sqlglot import ErrorLevel, exp

    for shifted in tree.find_all(exp.AtTimeZone):
        # from_utc_timestamp: DuckDB shows an instant in a zone, and would take a clock for one of that zone
        if isinstance(shifted.this, exp.Cast):
            shifted.set("this", shifted.this.this)
    said: str = tree.sql(dialect="duckdb", unsupported_level=ErrorLevel.IGNORE)
    return said.replace("XXHASH64(", "HASH(")


def _version(relation: str, version: object) -> str:
    plain = re.sub(r"\W", "_", relation.replace("`", ""))
    return f'versions_of_tables."{plain}_{version}"'


def _targets(sql: str) -> list[str]:
    return re.findall(r"^(?:INSERT INTO|UPDATE|DELETE FROM|ALTER TABLE) (\S+)", sql)


def _spark_type(kind: str) -> str:
    return _TYPES.get(kind, kind.lower())


@dataclass(frozen=True)
class DatabricksWarehouse(Warehouse):
    """A catalog of a workspace that this process plays."""

    workspace: Workspace = field(default_factory=Workspace, repr=False)
    waits: list[float] = field(default_factory=list[float])

    @property
    def removal(self) -> str:
        return "INSERT INTO"  # of rows into the place of others

    @property
    def replaces_at_once(self) -> bool:
        return True

    @classmethod
    def fresh(cls, monkeypatch: pytest.MonkeyPatch) -> DatabricksWarehouse:
        workspace = Workspace()
        waits = _counted_waits(monkeypatch)
        monkeypatch.setattr(connector, "connect", workspace.connect)
        monkeypatch.setattr(databricks_session, "_reach", lambda host, port: None)
        return cls(
            "databricks://token:dapi123@fake/warehouse/public?http_path=/sql/1.0/warehouses/w1",
            workspace,
            waits,
        )

    def execute(self, *statements: str) -> None:
        super().execute(*map(translated, statements))

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        return super().rows(translated(sql))

    def columns(self, relation: str) -> dict[str, str] | None:
        return super().columns(relation.replace('"', "`"))

    def quoted(self, name: str) -> str:
        return f'"{name}"'  # a test's SQL is PostgreSQL's until it is `spoken`

    def spoken(self, sql: str) -> str:
        return translated(sql)

    def type_of(self, kind: str) -> str:
        from sqlglot import exp

        return _clocks(exp.DataType.build(kind, dialect="postgres")).sql(dialect="databricks")

    def seen_from_outside(self, session: Any, sql: str) -> list[tuple[Any, ...]]:
        return self.rows(sql)

    def somebody_waits(self) -> bool:
        return bool(self.waits)

    def takes(self, name: str) -> bool:
        from backfill_assets.engines.databricks import SPELLING

        return not any(letter in SPELLING.forbidden for letter in name)

    def takes_schema(self, name: str) -> bool:
        return self.takes(name)

    def leftovers(self) -> list[str]:
        found = self.workspace.database.cursor().execute(
            "SELECT table_schema, table_name FROM information_schema.tables"
            " WHERE table_name LIKE 'backfill_stage%'"
        )
        return [".".join(row) for row in found.fetchall()]


@dataclass(frozen=True)
class LiveWarehouse(DatabricksWarehouse):
    """A catalog of a real workspace, which holds nothing but what tests made: all its schemas are dropped."""

    @classmethod
    def emptied(cls, url: str, monkeypatch: pytest.MonkeyPatch) -> LiveWarehouse:
        made = cls(url, waits=_counted_waits(monkeypatch))
        with made.session() as session:
            for name, *_ in session.fetch("SHOW SCHEMAS"):
                if name not in ("default", "information_schema", "public"):
                    session.execute(f"DROP SCHEMA IF EXISTS `{name}` CASCADE")
            session.execute("DROP SCHEMA IF EXISTS `public` CASCADE")
            session.execute("CREATE SCHEMA `public`")
        return made

    def leftovers(self) -> list[str]:
        with self.session() as session:
            found = session.fetch("SHOW TABLES IN `backfill` LIKE 'backfill_stage_*'")
        return [f"{row[0]}.{row[1]}" for row in found]


def _counted_waits(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Return the list that every wait for another writer is noted in; none is long."""
    waits: list[float] = []
    pause = databricks_session._pause
    monkeypatch.setattr(
        databricks_session,
        "_pause",
        lambda seconds: (waits.append(seconds), pause(min(seconds, 0.05))),
    )
    return waits


@functools.lru_cache(maxsize=2000)
def translated(sql: str) -> str:
    """Return what is meant, in Databricks' SQL."""
    import sqlglot

    if "`" in sql:  # what the engine itself has written
        return sql
    marked = _SERIES.sub(r"series_\1_\2 AS \3", sql)
    said = _clocks(sqlglot.parse_one(marked, read="postgres")).sql(dialect="databricks")
    return _MARKED.sub(
        lambda m: f"range({m.group(1)}, {int(m.group(2)) + 1}) AS {m.group(3)} ({m.group(3)})", said
    )


def _clocks(tree: Any) -> Any:
    """Return what is meant with wall clocks as Databricks calls them: its TIMESTAMP is an instant."""
    from sqlglot import exp

    for kind in tree.find_all(exp.DataType):
        if kind.this == exp.DataType.Type.TIMESTAMP:
            kind.set("this", exp.DataType.Type.TIMESTAMPNTZ)
    return tree
