"""What SQL Server, a Synapse dedicated pool and a Fabric Warehouse have in common: T-SQL through Microsoft's driver.

Rows come by bulk copy into a stage of a unique name, since bulk copy uses a connection of its own, which sees no
temporary table of ours. In what the three differ stands in `Traits`, filled in by each engine's module.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Generator
from copy import copy
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any, ClassVar

from backfill_assets.engines import tsql_claims as claims
from backfill_assets.engines.drivers import driver
from backfill_assets.engines.protocol import Claim, Report, Spelling, silence
from backfill_assets.engines.sql import create_schema, quoted, text
from backfill_assets.engines.transactions import Transactions
from backfill_assets.engines.tsql_errors import is_twin, told, unreachable
from backfill_assets.engines.tsql_types import described, stage_columns
from backfill_assets.engines.tsql_url import read
from backfill_assets.errors import (
    BackfillError,
    LimitReached,
    MissingRight,
    MissingTable,
    OutcomeUnknown,
    SliceBusy,
    Unreachable,
    WriteFailed,
    shown_cause,
    without_secrets,
)

if TYPE_CHECKING:
    import pyarrow as pa

_LOGIN_TIMEOUT = 103  # ODBC's SQL_ATTR_LOGIN_TIMEOUT
_TELL_AFTER_SECONDS = 5.0
_OLD_STAGE_HOURS = 48


@dataclass(frozen=True)
class Traits:
    """In what an engine differs beside its spelling. `settings` are the statements a session begins with.

    `locks`: whether there are application locks; else a claim is a row. `waits`: whether an update of that row waits
    for another one's, or fails when both commit. `stage`: makes the table `{name}` of the rows of `{sql}`.
    `sees_halves`: a query whose one value is 1 where readers may see a slice while it is replaced.
    """

    settings: tuple[str, ...]
    locks: bool
    waits: bool
    stage: str
    table_options: str = ""
    sees_halves: str | None = None


class TSqlEngine:
    """`scheme://user:password@host:1433/database` with `encrypt`, `trust_server_certificate`, `authentication` and more.

    In seconds: `lock_wait` (600), how long to wait for another writer; `statement_timeout` (0, none); `login_timeout` (15).
    """

    scheme: ClassVar[str]
    warehouse: ClassVar[str]
    spelling: Spelling
    traits: ClassVar[Traits]

    def __init__(self, url: str) -> None:
        self.shown = without_secrets(url)
        self.target = read(url, self.scheme)

    @property
    def place(self) -> str:
        """The database's name."""
        return self.target.database

    @property
    def address(self) -> str:
        """Host and port."""
        return f"{self.target.host},{self.target.port}"

    def limited(
        self, *, lock_wait: float | None = None, statement_timeout: float | None = None
    ) -> TSqlEngine:
        """Return the same database with other limits, in seconds; None keeps the one that it has."""
        told = {"lock_wait": lock_wait, "statement_timeout": statement_timeout}
        other = copy(self)
        other.target = replace(
            self.target, **{name: value for name, value in told.items() if value is not None}
        )
        return other

    @contextlib.contextmanager
    def session(
        self, *, who: str = "", read_only: bool = False, report: Report | None = None
    ) -> Generator[TSqlSession, None, None]:
        """Connect, and disconnect at the end; what was not committed by then is rolled back."""
        session = TSqlSession(self, who, read_only, report or silence)
        try:
            session.open()
            yield session
        finally:
            session.close()


class TSqlSession(Transactions):
    """One connection, each statement its own transaction except inside `transaction()`."""

    def __init__(self, engine: TSqlEngine, who: str, read_only: bool, report: Report) -> None:
        self.spelling = engine.spelling
        self._engine, self._traits = engine, engine.traits
        self._who, self._read_only, self._report = who, read_only, report
        self._connection: Any = None
        self._stages: set[str] = set()

    def open(self) -> None:
        """Connect, and undo defaults that would change what statements mean."""
        mssql = driver("mssql_python", self._engine.warehouse, "backfill-assets[sqlserver]")
        at = self._engine.target
        mssql.pooling(
            enabled=False
        )  # a connection of the pool may bring the settings of another session
        try:
            self._connection = mssql.connect(
                at.connection,
                autocommit=True,
                attrs_before={_LOGIN_TIMEOUT: max(1, round(at.login_timeout))},
                timeout=round(at.statement_timeout),
            )
        except Exception as error:
            # its text may show the connection string
            raise unreachable(error, self._engine.shown) from None
        for statement in self._traits.settings:
            self.execute(statement)
        if self._traits.locks:
            name = f"backfill_assets {self._who}".strip().encode("ascii", "replace")[:128]
            self.execute(f"SET CONTEXT_INFO 0x{name.hex()}")
        if not self._read_only and self._traits.sees_halves is not None:
            self._tell_of_halves(self._traits.sees_halves)

    def _tell_of_halves(self, query: str) -> None:
        with contextlib.suppress(BackfillError):
            if self.fetch(query)[0][0] == 1:
                self._report(
                    f"Readers of {self._engine.target.database} may see a slice while it is being replaced."
                    " Turn READ_COMMITTED_SNAPSHOT on for the database, and they will not."
                )

    def close(self) -> None:
        """Drop what is still staged and disconnect; the server rolls back what is open."""
        connection = self._connection
        if connection is None:
            return
        for name in list(self._stages):
            with contextlib.suppress(BackfillError):
                self.drop_stage(name)
        self._connection = None
        with contextlib.suppress(Exception):
            connection.close()

    def breathe(self) -> None:
        """Do nothing: an idle connection keeps nobody out."""

    @property
    def database(self) -> str:
        return self._engine.target.database

    def execute(self, sql: str) -> int:
        """Run a statement; the words of a transaction go to the driver, which must know whether one is open."""
        with self._guarded():
            if sql == "BEGIN TRANSACTION":
                self._open_connection.setautocommit(False)
                return -1
            if sql in ("COMMIT", "ROLLBACK"):
                self._end(sql)
                return -1
            cursor = self._run(sql)
            count = cursor.rowcount
            while cursor.nextset():  # an error of a later statement of a batch shows only here
                pass
            cursor.close()
            return count

    def _end(self, word: str) -> None:
        connection = self._open_connection
        try:
            connection.commit() if word == "COMMIT" else connection.rollback()
        finally:
            connection.setautocommit(True)

    def _commit(self) -> None:
        try:
            self.execute("COMMIT")
        except Unreachable as error:
            raise OutcomeUnknown(
                "whether the slice was replaced is not known, though it is whole, old or new",
                f"the connection broke during COMMIT ({error.why})",
                "Launch this partition again: replacing it twice does no harm",
            ) from error

    def define(self, *statements: str) -> None:
        for statement in statements:
            try:
                self.execute(statement)
            except BackfillError as error:
                if not is_twin(error):
                    raise

    def fetch(self, sql: str) -> list[tuple[Any, ...]]:
        with self._guarded():
            cursor = self._run(sql)
            rows = [tuple(row) for row in cursor.fetchall()]
            cursor.close()
        return [tuple(_utc(value) for value in row) for row in rows]

    def fetch_arrow(self, sql: str) -> pa.Table:
        import pyarrow as pa

        with self._guarded():
            cursor = self._run(sql)
            data = cursor.arrow()
            cursor.close()
        for place, field in enumerate(list(data.schema)):
            if pa.types.is_timestamp(field.type) and field.type.tz is not None:
                moment = data.column(place).cast(pa.timestamp(field.type.unit, "UTC"))
                data = data.set_column(place, field.name, moment)
        return data

    def columns_of(self, relation: str) -> dict[str, str] | None:
        if not relation.startswith("("):
            return self._columns_of_table(relation)
        try:
            with self._guarded():
                cursor = self._run(f"SELECT TOP (0) * FROM {relation}")
                shape = {column[0]: described(column) for column in cursor.description or ()}
                cursor.close()
        except MissingTable:
            return None
        return shape

    def _columns_of_table(self, relation: str) -> dict[str, str] | None:
        """Ask the catalog, which alone tells datetime from datetime2 and how long a text may be."""
        from sqlglot import exp

        catalog = exp.to_table(relation, dialect="tsql").args.get("catalog")
        prefix = f"{catalog.sql(dialect='tsql')}." if catalog is not None else ""
        found = self.fetch(
            f"SELECT c.name, t.name, c.max_length, c.precision, c.scale FROM {prefix}sys.columns AS c"
            f" JOIN {prefix}sys.types AS t ON t.user_type_id = c.user_type_id"
            f" WHERE c.object_id = OBJECT_ID({text(self.spelling, relation)}) ORDER BY c.column_id"
        )
        return {name: spelled_type(*kind) for name, *kind in found} or None

    def stage_arrow(self, name: str, data: pa.Table) -> str:
        relation = self._new_stage(name)
        columns = stage_columns(self.spelling, data)
        self.execute(f"CREATE TABLE {relation} ({columns}){self._traits.table_options}")
        if data.num_rows:
            with self._guarded():
                cursor = self._open_connection.cursor()
                cursor.bulkcopy_arrow(
                    relation,
                    data,
                    timeout=round(self._engine.target.statement_timeout),
                    column_mappings=data.column_names,
                    keep_nulls=True,
                )
                cursor.close()
        return relation

    def stage_select(self, name: str, sql: str) -> str:
        relation = self._new_stage(name)
        self.execute(self._traits.stage.format(name=relation, **hoisted(sql)))
        return relation

    def _new_stage(self, name: str) -> str:
        if not self._stages:
            self.define(create_schema(self.spelling, claims.STAGES))
            self._sweep()
        self._stages.add(name)
        return self._stage(name)

    def _sweep(self) -> None:
        """Drop stages that killed writers left behind, long after any writer may still use them."""
        old = self.fetch(
            "SELECT name FROM sys.tables WHERE schema_id = SCHEMA_ID('backfill') AND name LIKE 'backfill[_]stage[_]%'"
            f" AND create_date < DATEADD(hour, -{_OLD_STAGE_HOURS}, GETDATE())"
        )
        for (name,) in old:
            with contextlib.suppress(BackfillError):
                self.execute(f"DROP TABLE IF EXISTS {self._stage(name)}")

    def _stage(self, name: str) -> str:
        return f"{quoted(self.spelling, claims.STAGES)}.{quoted(self.spelling, name)}"

    def drop_stage(self, name: str) -> None:
        if self._connection is None or name not in self._stages:
            return
        self.execute(f"DROP TABLE IF EXISTS {self._stage(name)}")
        self._stages.discard(name)

    def claim(self, claim: Claim) -> None:
        """Take the locks, or the row; it comes first in a transaction, so starting that again loses nothing."""
        if self._read_only:
            raise WriteFailed(
                f"{claim.label} cannot be written",
                "the session was opened to read",
                "Open it to write",
            )
        held = self._locked(claim) if self._traits.locks else self._rowed(claim)
        if held is not None:
            how = (
                f"it still was after {self._engine.target.lock_wait:g} s"
                if self._traits.waits
                else "two writers of a table cannot commit beside each other here, and the other was first"
            )
            self._doomed = SliceBusy(
                f"{claim.label} is being rewritten by {held}, so nothing was changed",
                how,
                "Let that run finish, then launch this partition again",
            )
            raise self._doomed

    def _locked(self, claim: Claim) -> str | None:
        wait = self._engine.target.lock_wait
        first = min(wait, _TELL_AFTER_SECONDS)
        for patience in (first, wait - first):
            code, lock = self.fetch(self._locking(claim, patience))[-1]
            if code >= 0:
                return None
            held = self._holder(lock)
            if code != -1 or wait <= first or patience != first:
                return held
            self._report(
                f"{claim.label} is being rewritten by {held}: waiting, up to {wait - first:.0f} s more."
            )
        return "another writer"

    def _locking(self, claim: Claim, seconds: float) -> str:
        return claims.locking(self.spelling, claim, max(0, round(seconds * 1000)))

    def _holder(self, lock: str) -> str:
        doomed = self._doomed
        try:
            found = self.fetch(claims.holding(self.spelling, lock))
        except (MissingRight, WriteFailed, MissingTable):
            found, self._doomed = [], doomed  # not knowing who is no failure of the transaction
        if not found:
            return "another writer"
        name = str(found[0][0] or "").replace("\x00", "").removeprefix("backfill_assets ")
        return f"{name or 'a session'} (session {found[0][1]})"

    def _rowed(self, claim: Claim) -> str | None:
        if self.columns_of(claims.claim_table(self.spelling, claim)) is None:
            self.execute("ROLLBACK")  # not every engine makes a table inside a transaction
            self.define(
                create_schema(self.spelling, claims.STAGES),
                *claims.making_claim(self.spelling, claim),
            )
            self._begin()
        began = time.monotonic()
        connection = self._open_connection
        try:
            connection.timeout = max(1, round(self._engine.target.lock_wait))
            touched = self.execute(claims.taking(self.spelling, claim))
        except (SliceBusy, LimitReached):
            self._report(f"{claim.label} was claimed in vain for {time.monotonic() - began:.0f} s.")
            return "another writer"
        finally:
            connection.timeout = round(self._engine.target.statement_timeout)
        if touched == 0:
            raise WriteFailed(
                f"{claim.label} could not be claimed",
                f"{claims.claim_table(self.spelling, claim)} holds no row",
                "Drop that table, and it will be made again",
            )
        return None

    def clock(self) -> datetime:
        found: datetime = self.fetch("SELECT SYSUTCDATETIME()")[0][0]
        return found.replace(tzinfo=timezone.utc)

    @property
    def _open_connection(self) -> Any:
        if self._connection is None:
            raise Unreachable(
                "the database is closed", "its session has ended", "Open a new session"
            )
        return self._connection

    def _run(self, sql: str) -> Any:
        cursor = self._open_connection.cursor()
        # sent as it is: nothing in our text is a place for a parameter
        cursor.execute(sql, use_prepare=False)
        return cursor

    @contextlib.contextmanager
    def _guarded(self) -> Generator[None, None, None]:
        """Say the driver's errors as ours, and remember the first: a transaction cannot go on after one."""
        try:
            yield
        except BackfillError:
            raise
        except Exception as error:
            ours = told(error)
            self._doomed = self._doomed or ours
            raise ours from shown_cause(error)


def spelled_type(name: str, length: int, precision: int, scale: int) -> str:
    """Return a column's type as it would be declared, from the numbers that the catalog has."""
    if name in ("nvarchar", "nchar", "varchar", "char", "varbinary", "binary"):
        size = length // 2 if name.startswith("n") and length > 0 else length
        return f"{name}({'max' if size < 0 else size})"
    if name in ("decimal", "numeric"):
        return f"{name}({precision},{scale})"
    if name in ("datetime2", "datetimeoffset", "time"):
        return f"{name}({scale})"
    return name


def hoisted(sql: str) -> dict[str, str]:
    """Return a query as its WITH and the rest: T-SQL takes no WITH inside parentheses."""
    import sqlglot
    from sqlglot.errors import SqlglotError

    try:
        tree = sqlglot.parse_one(sql, read="tsql")
    except SqlglotError:
        return {"ctes": "", "sql": sql}
    name = "with_" if tree.args.get("with_") else "with"
    ctes = tree.args.get(name)
    if ctes is None:
        return {"ctes": "", "sql": sql}
    head = ctes.sql(dialect="tsql")
    tree.set(name, None)
    return {"ctes": f"{head} ", "sql": tree.sql(dialect="tsql")}


def _utc(value: Any) -> Any:
    if isinstance(value, datetime) and value.tzinfo is not None:
        return value.astimezone(timezone.utc)
    return value
