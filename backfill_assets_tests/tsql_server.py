"""A server for Microsoft's driver in the tests: what our engines send is run on DuckDB, in transactions, with locks.

It is our reading of the documentation and no measurement of a server. A statement is translated by sqlglot
(`tsql_dialect`), or done by one of the rules here where sqlglot cannot; one that is neither is error 102. Errors come as
the driver's own exceptions, with the server's words and no number, which `@@ERROR` tells.

What each of the three has not is refused: see `_must_be_had`. Readers see what is committed (READ_COMMITTED_SNAPSHOT).
Of two updates of one row in a Warehouse of Fabric the second is undone at once, and not when it commits.
"""

from __future__ import annotations

import contextlib
import itertools
import re
import threading
import time
from collections.abc import Callable
from datetime import date, datetime, timedelta, timezone
from typing import Any

import duckdb
from mssql_python.exceptions import sqlstate_to_exception
from sqlglot import exp

from backfill_assets_tests.tsql_dialect import (
    MACROS,
    SYNTAX,
    Fault,
    Refused,
    canonical,
    duck_type,
    in_duckdb,
    parsed,
    text_length,
    tsql_type,
)

ABSENT: Fault = ("42S02", 208, "Invalid object name '{}'.")
NO_COLUMN: Fault = ("42S22", 207, "Invalid column name '{}'.")
NO_SCHEMA: Fault = (
    "42000", 2760, "The specified schema name \"{}\" either does not exist or you do not have permission to use it.",
)  # fmt: skip
THERE: Fault = ("42S01", 2714, "There is already an object named '{}' in the database.")
CUT_OFF: Fault = ("22001", 2628, "String or binary data would be truncated in table '{}'.")
NO_VALUE: Fault = ("23000", 515, "Cannot insert the value NULL into column '{}'; column does not allow nulls.")  # fmt: skip
TWICE: Fault = (
    "23000",
    2627,
    "Violation of PRIMARY KEY constraint. Cannot insert duplicate key. {}",
)
UNREADABLE: Fault = ("22018", 245, "Conversion failed when converting a value: {}")
TOO_LARGE: Fault = (
    "22003",
    8115,
    "Arithmetic overflow error converting expression to data type. {}",
)
NO_TRANSACTION: Fault = (
    "25000", 3902, "The COMMIT TRANSACTION request has no corresponding BEGIN TRANSACTION.{}",
)  # fmt: skip
WAITED: Fault = ("HYT00", 1222, "Lock request time out period exceeded.{}")
CONFLICT: Fault = (
    "42000", 24556, "Snapshot isolation transaction aborted due to update conflict.{}",
)  # fmt: skip
DDL_INSIDE: Fault = ("42000", 226, "{} statement not allowed within multi-statement transaction.")
ABORTED: Fault = ("25000", 111233, "The current transaction has aborted, and any pending changes have been rolled back.{}")  # fmt: skip
LOST: Fault = ("08S01", 0, "TCP Provider: Error code 0x68")
TIME_IS_UP: Fault = ("HYT00", 0, "Query timeout expired{}")
NOT_HERE: Fault = ("42000", 15871, "'{}' is not supported in this edition.")

# host -> server
SERVERS: dict[str, Server] = {}
_TEXT = r"N?'((?:[^']|'')*)'"
_ABOUT_TABLE = re.compile(rf"IF OBJECT_ID\({_TEXT}\) IS (NOT )?NULL (.*)", re.DOTALL)
_ABOUT_COLUMN = re.compile(rf"IF COL_LENGTH\({_TEXT}, {_TEXT}\) IS NULL (.*)", re.DOTALL)
_ABOUT_ROWS = re.compile(r"IF NOT EXISTS \(SELECT 1 FROM (\S+)\) (INSERT .*)", re.DOTALL)
_INDEX = re.compile(rf"IF NOT EXISTS \(SELECT 1 FROM sys\.indexes WHERE name = {_TEXT} .*?OBJECT_ID\({_TEXT}\)\) CREATE INDEX .*", re.DOTALL)  # fmt: skip
_SCHEMA = re.compile(rf"DECLARE @make n?varchar\(\d+\) = N?'CREATE SCHEMA ' \+ QUOTENAME\({_TEXT}\); IF SCHEMA_ID\({_TEXT}\) IS NULL EXEC\(@make\)")  # fmt: skip
_COLUMNS = re.compile(rf"SELECT c\.name, t\.name, .* FROM (?:\S+\.)?sys\.columns .*OBJECT_ID\({_TEXT}\) ORDER BY c\.column_id")  # fmt: skip
_FILLED = re.compile(rf"SELECT name FROM sys\.columns WHERE object_id = OBJECT_ID\({_TEXT}\) AND \(is_computed")  # fmt: skip
_NATURE = re.compile(rf"SELECT o\.type, p\.name FROM (?:\S+\.)?sys\.objects .*sys\.security_predicates .*OBJECT_ID\({_TEXT}\)$", re.DOTALL)  # fmt: skip
_OLD_STAGES = re.compile(r"SELECT name FROM sys\.tables .*'backfill\[_\]stage\[_\]%'")
_APPLOCK = re.compile(
    rf"SET NOCOUNT ON; .*OBJECT_ID\({_TEXT}\).*DATEADD\(millisecond, (\d+), .*@LockMode = '(Exclusive|Shared)'"
    r"(?:.*DECLARE @day date = '(.{10})';.*@day <= '(.{10})')?.* SELECT @got, @lock; SET NOCOUNT OFF",
    re.DOTALL,
)
_HOLDER = re.compile(r"SELECT .*context_info.*CHARINDEX\(N'\[(.*?)\]'", re.DOTALL)
_CTAS = re.compile(r"CREATE TABLE (\S+)(?: WITH \((.*?)\))? AS (.*)", re.DOTALL)
_CREATE = re.compile(r"CREATE TABLE .*?\)(?P<options> WITH \([^()]*\))$", re.DOTALL)
_DDL = ("CREATE", "ALTER", "DROP", "TRUNCATE")


class Locks:
    """Shared and exclusive locks by name, held by a connection until its transaction ends."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._held: dict[str, dict[Connection, str]] = {}
        self.waiting = 0

    def take(self, name: str, who: Connection, mode: str, until: float) -> bool:
        with self._changed:
            self.waiting += 1
            try:
                if not self._changed.wait_for(
                    lambda: self._is_free(name, who, mode), max(0.0, until - time.monotonic())
                ):
                    return False
            finally:
                self.waiting -= 1
            self._held.setdefault(name, {})[who] = mode
            return True

    def _is_free(self, name: str, who: Connection, mode: str) -> bool:
        others = [held for by, held in self._held.get(name, {}).items() if by is not who]
        return not others or (mode == "Shared" and set(others) == {"Shared"})

    def release(self, who: Connection) -> None:
        with self._changed:
            for held in self._held.values():
                held.pop(who, None)
            self._changed.notify_all()

    def holders(self, name: str) -> list[Connection]:
        """Return who holds the locks whose names begin so."""
        with self._changed:
            return [by for lock, held in self._held.items() if lock.startswith(name) for by in held]


class Server:
    """One database of one kind (sqlserver, synapse or fabric), and everything that was sent to it."""

    def __init__(self, kind: str, database: str = "warehouse") -> None:
        self.kind, self.database = kind, database
        self.root = duckdb.connect()
        self.root.execute(
            f'ATTACH \':memory:\' AS "{database}"; USE "{database}"; CREATE SCHEMA dbo'
        )
        for macro in MACROS:
            self.root.execute(macro)
        self.locks = Locks()
        self.sent: list[str] = []
        self.logins: list[dict[str, Any]] = []
        # what a statement that begins so is answered with: an error, or whatever a call makes of it
        self.failing: dict[str, Fault | Callable[[], None]] = {}
        self.numbers = itertools.count(51)
        self.rights_to_see_state = True
        # whether its `user options` let every statement begin a transaction
        self.implicit_transactions = False
        # policies that filter the rows of a table, by its name in lower case without a schema
        self.policies: dict[str, str] = {}
        self.rights_to_see_policies = True
        # the number of the statement that a connection is lost at, and whether the server has done it by then
        self.lost_at: tuple[int, bool] | None = None
        self.reads_committed_snapshot = True

    @property
    def wide(self) -> bool:
        return self.kind != "fabric"


def connect(connection_str: str = "", **named: Any) -> Connection:
    """Stand in for `mssql_python.connect`."""
    parts = dict(re.findall(r"(\w+)=\{((?:[^}]|\}\})*)\};", connection_str))
    server = SERVERS[parts["Server"].partition(",")[0]]
    server.logins.append({**parts, **named})
    if "LOGIN" in server.failing:
        raise driver_error(server.failing["LOGIN"])
    if parts["Database"] != server.database:
        raise driver_error(("28000", 4060, f'Cannot open database "{parts["Database"]}".'))
    return Connection(server)


def driver_error(fault: Any) -> Exception:
    """Return the driver's own exception: words without a number."""
    state, _, words = fault
    error: Exception | None = sqlstate_to_exception(state, f"[Microsoft][SQL Server]{words}")
    assert error is not None, state
    return error


class Connection:
    """One session of a server; what it does in a transaction starts with the first statement that reads or writes."""

    def __init__(self, server: Server) -> None:
        self.server, self.number = server, next(server.numbers)
        self.timeout = 0
        self.lock_wait = 600.0
        self.name = ""
        self.implicit, self.counts = server.implicit_transactions, True
        self.trancount, self.aborted, self.last_error = 0, False, 0
        self._inside, self._is_lost = False, False
        self._duck: Any = server.root.cursor()
        self._duck.execute(f"USE \"{server.database}\".dbo; SET TimeZone = 'UTC'")

    def cursor(self) -> Cursor:
        return Cursor(self)

    def close(self) -> None:
        self.end(commit=False)
        self._duck.close()

    def end(self, *, commit: bool) -> None:
        """End a transaction, if one is open."""
        try:
            if self._inside:
                self._inside = False
                self._duck.execute("COMMIT" if commit else "ROLLBACK")
        except duckdb.TransactionException as error:
            raise Refused(CONFLICT) from error
        finally:
            self.trancount, self.aborted = 0, False
            self.server.locks.release(self)

    def run(self, sql: str) -> Answer:
        """Run one batch as the server does: an error undoes the whole transaction."""
        if self._is_lost:
            raise driver_error(LOST)
        self.server.sent.append(sql)
        number, done = self.server.lost_at or (0, False)
        if len(self.server.sent) == number:
            if done:
                self._ran(sql)
            self._is_lost = True
            with contextlib.suppress(Refused):
                self.end(commit=False)
            raise driver_error(LOST)
        return self._ran(sql)

    def _ran(self, sql: str) -> Answer:
        if sql == "SELECT @@ERROR":
            if self.aborted:
                raise driver_error(ABORTED)
            return Answer([(self.last_error,)])
        try:
            # a batch that fails in the middle does not come to its own SET NOCOUNT OFF
            self.counts = self.counts and not sql.startswith("SET NOCOUNT ON")
            for beginning, fault in self.server.failing.items():
                if sql.startswith(beginning):
                    if not callable(fault):
                        raise Refused((fault[0], fault[1], fault[2].replace("{}", "")))
                    fault()
            answer = self._answered(sql)
        except Refused as refused:
            self._undo()
            self.last_error = refused.number
            raise driver_error((refused.state, refused.number, str(refused))) from refused
        except duckdb.Error as error:
            refused = self._of_duckdb(error)
            self._undo()
            self.last_error = refused.number
            raise driver_error((refused.state, refused.number, str(refused))) from error
        self.last_error = 0
        return answer

    def _undo(self) -> None:
        was_open = self.trancount > 0
        with contextlib.suppress(Refused):
            self.end(commit=False)
        if was_open and self.server.kind == "synapse":  # whose client has to say ROLLBACK itself
            self.trancount, self.aborted = 1, True

    def _of_duckdb(self, error: duckdb.Error) -> Refused:
        said = str(error).split("\n")[0][:150].replace("{", "(").replace("}", ")")
        if isinstance(error, duckdb.TransactionException):
            return Refused(CONFLICT if self.server.kind == "fabric" else WAITED)
        if isinstance(error, duckdb.CatalogException) and "already exists" in said:
            return Refused(THERE, said)
        if isinstance(error, duckdb.CatalogException):
            return Refused(NO_SCHEMA if "Schema with name" in said else ABSENT, said)
        if isinstance(error, duckdb.BinderException):
            return Refused(NO_COLUMN, said)
        if isinstance(error, duckdb.ConversionException):
            return Refused(UNREADABLE, said)
        if isinstance(error, duckdb.OutOfRangeException):
            return Refused(TOO_LARGE, said)
        if isinstance(error, duckdb.ConstraintException):
            faults = {"CHECK": CUT_OFF, "NOT NULL": NO_VALUE}
            return Refused(next((f for word, f in faults.items() if word in said), TWICE), said)
        return Refused(("42000", 50000, "{}"), said)

    def _answered(self, sql: str) -> Answer:
        word = sql.split(None, 1)[0].upper()
        if sql == "BEGIN TRANSACTION":
            self.trancount += 2 if self.implicit else 1
            return Answer()
        if sql == "IF @@TRANCOUNT > 0 ROLLBACK TRANSACTION":
            self.end(commit=False)
            return Answer()
        if self.aborted:
            raise Refused(ABORTED)
        if sql == "COMMIT TRANSACTION":
            if not self.trancount:
                raise Refused(NO_TRANSACTION)
            self.trancount -= 1
            if not self.trancount:
                self.end(commit=True)
            return Answer()
        if word in _DDL and self.trancount and self.server.kind == "synapse":
            raise Refused(DDL_INSIDE, word)
        self._must_be_had(sql)
        if word == "SET" and "; SELECT @got" not in sql:
            return self._set(sql)
        if word == "WAITFOR":
            time.sleep(min(self.timeout or 1, 1))
            raise Refused(TIME_IS_UP)
        for pattern, rule in _RULES:
            if (
                found := pattern.fullmatch(sql)
                if pattern.pattern.endswith(")")
                else pattern.match(sql)
            ):
                return rule(self, *found.groups())
        return self._plain(sql)

    def _must_be_had(self, sql: str) -> None:
        """Refuse what this kind of server has not."""
        kind = self.server.kind
        lacking = {
            "sqlserver": (r"\bDISTRIBUTION\b",),
            "synapse": (r"VALUES \(.*CAST\(", r"sp_getapplock", r"CONTEXT_INFO", r"LOCK_TIMEOUT", r"ISOLATION LEVEL", r"DROP TABLE IF EXISTS", r"SELECT \* INTO", r"CREATE INDEX"),
            "fabric": (r"sp_getapplock", r"CONTEXT_INFO", r"LOCK_TIMEOUT", r"ISOLATION LEVEL", r"XACT_ABORT", r"\bDISTRIBUTION\b", r"CREATE INDEX"),
        }[kind]  # fmt: skip
        unquoted = re.sub(_TEXT, "''", sql)
        for what in lacking:
            if re.search(what, unquoted):
                raise Refused(NOT_HERE, what)
        is_table = re.match(r"(IF \S+ IS NULL )?CREATE TABLE", unquoted)
        if (
            kind == "fabric"
            and is_table
            and re.search(r"(?i)nvarchar|(?<!AS )datetimeoffset", unquoted)
        ):
            raise Refused(NOT_HERE, unquoted[:80])

    def _set(self, sql: str) -> Answer:
        if "IMPLICIT_TRANSACTIONS OFF" in sql:
            self.implicit = False
        if "NOCOUNT OFF" in sql:
            self.counts = True
        if found := re.search(r"LOCK_TIMEOUT (\d+)", sql):
            self.lock_wait = int(found[1]) / 1000
        if found := re.search(r"CONTEXT_INFO 0x([0-9a-f]*)", sql):
            self.name = bytes.fromhex(found[1]).decode()
        return Answer()

    def _plain(self, sql: str) -> Answer:
        """Translate and run a statement that is SQL and nothing else."""
        changes = re.match(r"(?:UPDATE|DELETE FROM) (\S+)", sql)
        if sql.startswith("CREATE INDEX"):
            return Answer()
        if changes and self.trancount and self.server.kind == "synapse":
            until = time.monotonic() + (self.timeout or 600)
            if not self.server.locks.take(f"update {changes[1]}", self, "Exclusive", until):
                raise Refused(TIME_IS_UP)
        if found := _CTAS.fullmatch(sql):
            return self._make_as(*found.groups())
        if found := _CREATE.fullmatch(sql):
            sql = sql[: found.start("options")]
        tree = parsed(sql)
        if (
            isinstance(tree, exp.Create)
            and tree.kind == "TABLE"
            and isinstance(tree.this, exp.Schema)
        ):
            return self._make(tree)
        if isinstance(tree, exp.Select) and tree.args.get("into"):
            if self.server.kind != "sqlserver":
                raise Refused(SYNTAX, "INTO")
            name = tree.args["into"].this
            tree.set("into", None)
            return self._fill(name, tree)
        return self.query(in_duckdb(tree), counted=not isinstance(tree, exp.Query))

    def query(self, sql: str, *, counted: bool = False) -> Answer:
        """Run a statement of DuckDB's, inside the transaction if one is open."""
        if self.trancount and not self._inside:
            self._duck.execute("BEGIN TRANSACTION")
            self._inside = True
        done = self._patiently(sql)
        if counted:
            rows = done.fetchall()
            return Answer(count=rows[0][0] if rows and isinstance(rows[0][0], int) else -1)
        return Answer(arrow=done.to_arrow_table() if done.description else None)

    def _patiently(self, sql: str) -> Any:
        """Run a statement; one of its own waits for others', as it would for their locks."""
        until = time.monotonic() + min(self.lock_wait, 20)
        while True:
            try:
                return self._duck.execute(sql)
            except duckdb.TransactionException:
                if self._inside or time.monotonic() > until:
                    raise
            time.sleep(0.005)

    def _make(self, tree: Any) -> Answer:
        """Make a table: its columns remember the types that T-SQL has for them, and texts how long they may be."""
        name, columns, notes = tree.this.this.sql(dialect="duckdb"), list[str](), list[str]()
        for column in tree.this.expressions:
            if not isinstance(column, exp.ColumnDef):
                columns.append(column.sql(dialect="duckdb"))
                continue
            kind = canonical(column.args["kind"].sql(dialect="tsql"))
            quoted = column.this.sql(dialect="duckdb")
            rules = [c.sql(dialect="tsql") for c in column.constraints]
            kept = [rule for rule in rules if rule in ("NOT NULL", "PRIMARY KEY")]
            length = text_length(kind)
            kept += [f"CHECK (length({quoted}) <= {length})"] if length is not None else []
            columns.append(f"{quoted} {duck_type(kind)} {' '.join(kept)}")
            notes.append(f"COMMENT ON COLUMN {name}.{quoted} IS '{kind}'")
        self.query(f"CREATE TABLE {name} ({', '.join(columns)})")
        for note in notes:
            self.query(note)
        return Answer()

    def _make_as(self, name: str, options: str | None, query: str) -> Answer:
        if self.server.kind == "sqlserver" or (self.server.kind == "synapse" and not options):
            raise Refused(SYNTAX, "AS")
        tree = parsed(f"SELECT * FROM {name} AS made")
        into = next(iter(tree.find_all(exp.Table))).copy()
        into.set("alias", None)
        return self._fill(into, parsed(query))

    def _fill(self, name: Any, tree: Any) -> Answer:
        unnamed = [
            e for e in tree.expressions if not (e.is_star or isinstance(e, (exp.Alias, exp.Column)))
        ]
        if unnamed:
            raise Refused(("42000", 1038, "An object or column name is missing or empty.{}"))
        self.query(f"CREATE TABLE {name.sql(dialect='duckdb')} AS {in_duckdb(tree)}", counted=True)
        return self.query(f"SELECT count(*) FROM {name.sql(dialect='duckdb')}", counted=True)

    # rules for what sqlglot cannot translate

    def _if_table(self, name: str, there: str | None, statement: str) -> Answer:
        return self._answered(statement) if self._is_there(name) == bool(there) else Answer()

    def _is_there(self, name: str) -> bool:
        return bool(self.columns(name))

    def _if_column(self, table: str, column: str, statement: str) -> Answer:
        names = [name.lower() for name, *_ in self.columns(table)]
        if _said(column).lower() in names:
            return Answer()
        found = re.fullmatch(r"ALTER TABLE (\S+) ADD (\[.*\]) (\S+) NULL", statement)
        assert found is not None, statement
        kind = canonical(found[3])
        relation = parsed(f"SELECT {found[2]} FROM {found[1]}")
        place = next(iter(relation.find_all(exp.Table))).sql(dialect="duckdb")
        name = next(iter(relation.find_all(exp.Column))).sql(dialect="duckdb")
        self.query(f"ALTER TABLE {place} ADD COLUMN {name} {duck_type(kind)}")
        return self.query(f"COMMENT ON COLUMN {place}.{name} IS '{kind}'")

    def _if_no_rows(self, relation: str, statement: str) -> Answer:
        rows = self._plain(f"SELECT TOP (1) 1 AS one FROM {relation}").rows
        return Answer() if rows else self._plain(statement)

    def _index(self, _: str, table: str) -> Answer:
        if not self._is_there(table):
            raise Refused(ABSENT, table)
        return Answer()

    def _schema(self, name: str, _: str) -> Answer:
        quoted = _said(name).replace('"', '""')
        return self.query(f'CREATE SCHEMA IF NOT EXISTS "{quoted}"')

    def columns(self, name: str) -> list[tuple[str, str, int, int, int]]:
        """Return name, type, length, precision and scale of a table's columns, as sys.columns has them."""
        table = next(iter(parsed(f"SELECT 1 AS one FROM {_said(name)}").find_all(exp.Table)))
        where = [
            f"lower(table_name) = lower({_literal(table.name)})",
            f"lower(schema_name) = lower({_literal(table.db or 'dbo')})",
            f"lower(database_name) = lower({_literal(table.catalog or self.server.database)})",
        ]
        rows = self._duck.execute(
            "SELECT column_name, data_type, comment FROM duckdb_columns()"
            f" WHERE {' AND '.join(where)} ORDER BY column_index"
        ).fetchall()
        wide = self.server.wide
        return [
            (column, *_numbers(note or tsql_type(kind, wide=wide))) for column, kind, note in rows
        ]

    def _columns(self, name: str) -> Answer:
        return Answer(list(self.columns(name)))

    def _filled(self, _: str) -> Answer:
        return Answer([])

    def _objects(self) -> Answer:
        rows = self._duck.execute(
            "SELECT schema_name, table_name, 'U ' FROM duckdb_tables() UNION ALL"
            " SELECT schema_name, view_name, 'V ' FROM duckdb_views() WHERE NOT internal"
        )
        return Answer(rows.fetchall())

    def _schemas(self) -> Answer:
        rows = self._duck.execute(
            "SELECT schema_name FROM duckdb_schemas() WHERE NOT internal"
            f" AND database_name = {_literal(self.server.database)} AND schema_name <> 'dbo'"
        )
        return Answer(rows.fetchall())

    def _nature(self, name: str) -> Answer:
        """Tell what a name means; policies are shown to nobody who may not see them, and that is no error."""
        table = next(iter(parsed(f"SELECT 1 AS one FROM {_said(name)}").find_all(exp.Table)))
        found = [
            str(kind)
            for schema, there, kind in self._objects().rows
            if (schema.lower(), there.lower()) == ((table.db or "dbo").lower(), table.name.lower())
        ]
        policy = self.server.policies.get(table.name.lower())
        shown = policy if self.server.rights_to_see_policies else None
        return Answer([(kind, shown) for kind in found])

    def _old_stages(self) -> Answer:
        return Answer([])

    def _applock(
        self, table: str, milliseconds: str, mode: str, first: str | None, last: str | None
    ) -> Answer:
        """Do as sp_getapplock does for the table and each day: 0 or 1, or -1 where the time is up."""
        self.counts = True
        if not self.trancount:
            return Answer([(-999, "")])
        until = time.monotonic() + int(milliseconds) / 1000
        key = f"bf|{_said(table).lower()}|"
        wanted = [(f"{key}table", mode)]
        if first and last:
            day, end = date.fromisoformat(first), date.fromisoformat(last)
            while day <= end:
                wanted.append((f"{key}{day}", "Exclusive"))
                day += timedelta(days=1)
        for name, how in wanted:
            if not self.server.locks.take(name, self, how, until):
                return Answer([(-1, name)])
        return Answer([(0, wanted[-1][0])])

    def _holder(self, name: str) -> Answer:
        if not self.server.rights_to_see_state:
            raise Refused(
                ("42000", 300, "VIEW SERVER STATE permission was denied on object 'server'.{}")
            )
        return Answer(
            [
                (by.name, by.number)
                for by in self.server.locks.holders(_said(name))
                if by is not self
            ]
        )


_RULES: tuple[tuple[re.Pattern[str], Callable[..., Answer]], ...] = (
    (_SCHEMA, Connection._schema),
    (_INDEX, Connection._index),
    (_ABOUT_TABLE, Connection._if_table),
    (_ABOUT_COLUMN, Connection._if_column),
    (_ABOUT_ROWS, Connection._if_no_rows),
    (_COLUMNS, Connection._columns),
    (_FILLED, Connection._filled),
    (_NATURE, Connection._nature),
    (re.compile(r"SELECT count\(\*\) FROM sys\.fn_my_permissions\(NULL, 'DATABASE'\) WHERE"), lambda at: Answer([(int(at.server.rights_to_see_policies),)])),
    (_OLD_STAGES, Connection._old_stages),
    (re.compile(r"SELECT SCHEMA_NAME\(schema_id\), name, type FROM sys\.objects WHERE type IN"), Connection._objects),
    (re.compile(r"SELECT name FROM sys\.schemas WHERE schema_id BETWEEN"), Connection._schemas),
    (re.compile(r"SELECT count\(\*\) FROM sys\.dm_tran_locks"), lambda at: Answer([(at.server.locks.waiting,)])),
    (_APPLOCK, Connection._applock),
    (_HOLDER, Connection._holder),
    (re.compile(r"SELECT SYSUTCDATETIME\(\)$"), lambda _: Answer([(datetime.now(timezone.utc).replace(tzinfo=None),)])),
    (re.compile(r"SELECT USER_NAME\(\)$"), lambda _: Answer([("loader",)])),
    (re.compile(r"SELECT @@SERVERNAME, DB_NAME\(\)$"), lambda at: Answer([("server", at.server.database)])),
    (re.compile(r"SELECT CONCAT\(@@LOCK_TIMEOUT, ' ms'\), 'kept by the driver'$"), lambda at: Answer([(f"{at.lock_wait * 1000:.0f} ms", "kept by the driver")])),
    (re.compile(r"SELECT CASE WHEN is_read_committed_snapshot_on"), lambda at: Answer([(int(not at.server.reads_committed_snapshot),)])),
)  # fmt: skip


class Answer:
    """Rows, an Arrow table, or a number of rows that were changed."""

    def __init__(
        self, rows: list[Any] | None = None, *, arrow: Any = None, count: int = -1
    ) -> None:
        self._rows, self.arrow, self.count = rows, arrow, count

    @property
    def rows(self) -> list[tuple[Any, ...]]:
        if self._rows is not None or self.arrow is None:
            return self._rows or []
        # by place: two columns may have one name
        return list(zip(*(column.to_pylist() for column in self.arrow.columns), strict=True))


class Cursor:
    """Of the driver's cursor what our engines use."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._answer = Answer()

    def __enter__(self) -> Cursor:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def execute(self, sql: str, *, use_prepare: bool = True) -> Cursor:
        assert not use_prepare
        self._answer = self._connection.run(sql)
        return self

    def executemany(self, sql: str, rows: list[tuple[Any, ...]]) -> None:
        self._connection.server.sent.append(sql)
        duck = in_duckdb(parsed(sql.partition(" VALUES")[0] + " SELECT 1 AS one")).partition(
            " SELECT"
        )[0]
        for row in rows:
            self._connection._duck.execute(f"{duck} VALUES ({', '.join('?' * len(row))})", row)

    @property
    def rowcount(self) -> int:
        return self._answer.count if self._connection.counts else -1

    def nextset(self) -> bool:
        return False

    def fetchall(self) -> list[tuple[Any, ...]]:
        return self._answer.rows

    def fetchone(self) -> tuple[Any, ...]:
        return self._answer.rows[0]

    def arrow(self) -> Any:
        return self._answer.arrow

    def close(self) -> None:
        pass

    def bulkcopy_arrow(
        self,
        table_name: str,
        source: Any,
        *,
        timeout: int,
        column_mappings: list[str],
        keep_nulls: bool,
    ) -> dict[str, Any]:
        """Copy rows by name, on a connection of its own, which sees no transaction of this one."""
        assert keep_nulls
        server = self._connection.server
        server.sent.append(f"BULK {table_name}")
        fault = server.failing.get("BULK")
        if fault is not None and not callable(fault):
            raise RuntimeError(fault[2])
        tree = parsed(f"SELECT * FROM {table_name} AS copied")
        relation = next(iter(tree.find_all(exp.Table))).copy()
        relation.set("alias", None)
        duck = server.root.cursor()
        duck.execute(f"USE \"{server.database}\".dbo; SET TimeZone = 'UTC'")
        duck.register("copied_rows", source)
        names = ", ".join('"' + name.replace('"', '""') + '"' for name in column_mappings)
        duck.execute(
            f"INSERT INTO {relation.sql(dialect='duckdb')} ({names}) SELECT {names} FROM copied_rows"
        )
        duck.unregister("copied_rows")
        duck.close()
        return {"rows_copied": source.num_rows}


def _said(literal: str) -> str:
    return literal.replace("''", "'")


def _literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _numbers(kind: str) -> tuple[str, int, int, int]:
    """Return what sys.columns tells of a type: name, bytes, precision, scale."""
    head, _, rest = kind.rstrip(")").partition("(")
    if head == "decimal":
        precision, _, scale = rest.partition(",")
        return head, 0, int(precision), int(scale or 0)
    if head in ("datetime2", "datetimeoffset", "time"):
        return head, 0, 0, int(rest)
    if rest:
        return head, -1 if rest == "max" else int(rest) * (2 if head.startswith("n") else 1), 0, 0
    return head, 0, 0, 0
