"""What SQL Server, a Synapse dedicated pool and a Fabric Warehouse have in common: T-SQL through Microsoft's driver.

Rows come by bulk copy into a stage of a unique name, since bulk copy uses a connection of its own, which sees no
temporary table of ours. In what the three differ stands in `Traits`, filled in by each engine's module.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Generator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any, ClassVar

from backfill_assets.engines import tsql_claims as claims
from backfill_assets.engines import tsql_policies as policies
from backfill_assets.engines.drivers import driver
from backfill_assets.engines.limited import Limited
from backfill_assets.engines.protocol import Claim, Report, Spelling, silence
from backfill_assets.engines.reading import opened_to_read, refuse_write
from backfill_assets.engines.sql import create_schema, quoted, text
from backfill_assets.engines.transactions import Transactions, opened
from backfill_assets.engines.tsql_errors import is_twin, told, unreachable
from backfill_assets.engines.tsql_types import (
    column_types,
    in_utc,
    spelled_type,
    stage_columns,
    writable,
)
from backfill_assets.engines.tsql_url import read
from backfill_assets.engines.tsql_with import apart, hoisted
from backfill_assets.engines.wording import unknown_outcome
from backfill_assets.errors import (
    BackfillError,
    DeclarationError,
    HiddenRows,
    LimitReached,
    MissingRight,
    MissingTable,
    SliceBusy,
    Unreachable,
    WriteFailed,
    shown_cause,
    without_secrets,
)

if TYPE_CHECKING:
    import pyarrow as pa

_TELL_AFTER_SECONDS = 5.0
_OLD_STAGE_HOURS = 48
# what sp_getapplock returns: 0 and 1 have the lock, -1 came too late, -2 was cancelled, -3 was a deadlock's victim
_VICTIM = -3
# transactions are said in T-SQL. Switching the driver's autocommit off instead makes a dedicated pool begin the next
# transaction at each COMMIT, and the DDL after it fails; and a COMMIT of what the server has rolled back is an error
# (3902) only where it is said
_SAID = {
    "BEGIN TRANSACTION": "BEGIN TRANSACTION",
    "COMMIT": "COMMIT TRANSACTION",
    # XACT_ABORT has undone most of what fails before this is said
    "ROLLBACK": "IF @@TRANCOUNT > 0 ROLLBACK TRANSACTION",
}


@dataclass(frozen=True)
class Traits:
    """In what an engine differs beside its spelling.

    `settings` begins a session, as one batch; `{lock_wait}` stands for milliseconds, `{who}` for a name in
    hexadecimal digits. `locks`: whether there are application locks; else a claim is a row. `waits`: whether an update
    of that row waits for another one's, or one of the two is undone. `stage`: makes the table `{name}` of the rows of
    `{sql}`. `sees_halves`: a query whose one value is 1 where readers may see a slice while it is replaced.
    """

    settings: str
    locks: bool
    waits: bool
    stage: str
    table_options: str = ""
    sees_halves: str | None = None


class TSqlEngine(Limited):
    """`scheme://user:password@host:1433/database` with `encrypt`, `trust_server_certificate`, `authentication` and more.

    In seconds: `lock_wait` (600), how long to wait for another writer; `statement_timeout` (0, none); `login_timeout` (15).
    """

    scheme: ClassVar[str]
    warehouse: ClassVar[str]
    # how a user and a password in the URL are meant, where it does not say
    authentication: ClassVar[str | None] = None
    spelling: Spelling
    traits: ClassVar[Traits]

    def __init__(self, url: str) -> None:
        self.shown = without_secrets(url)
        self.target = read(url, self.scheme, self.authentication)

    @property
    def place(self) -> str:
        """The database's name."""
        return self.target.database

    @property
    def address(self) -> str:
        """Host and port."""
        return f"{self.target.host},{self.target.port}"

    def _limit(self, limits: Mapping[str, float]) -> None:
        self.target = replace(self.target, **limits)

    def session(
        self, *, who: str = "", read_only: bool = False, report: Report | None = None
    ) -> AbstractContextManager[TSqlSession]:
        """Connect, and disconnect at the end; what was not committed by then is rolled back."""
        return opened(TSqlSession(self, who, read_only, report or silence))


class TSqlSession(Transactions):
    """One connection, each statement its own transaction except inside `transaction()`."""

    def __init__(self, engine: TSqlEngine, who: str, read_only: bool, report: Report) -> None:
        self.spelling = engine.spelling
        self._engine, self._traits = engine, engine.traits
        self._who, self._read_only, self._report = who, read_only, report
        self._connection: Any = None
        self._stages: set[str] = set()
        self._has_swept = False
        self._claim_tables: set[str] = set()
        self._looked_at: set[str] = set()
        self._sees_policies: bool | None = None
        self._has_told = False

    def open(self) -> None:
        """Connect, and undo defaults that would change what statements mean."""
        mssql = driver("mssql_python", self._engine.warehouse, "backfill-assets[sqlserver]")
        at = self._engine.target
        # a connection of the driver's pool may bring the settings of another session
        mssql.pooling(enabled=False)
        try:
            self._connection = mssql.connect(
                at.connection, autocommit=True, timeout=max(1, round(at.login_timeout))
            )
            self._connection.timeout = round(at.statement_limit)
        except Exception as error:
            # its text may show the connection string
            raise unreachable(error, self._engine.shown) from None
        name = f"backfill_assets {self._who}".strip().encode("ascii", "replace")[:128]
        wait = max(1, round(at.wait_seconds * 1000))
        self._send(self._traits.settings.format(lock_wait=wait, who=name.hex()))
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
        self._refuse_write(sql)
        return self._send(_SAID.get(sql, sql))

    def _send(self, sql: str) -> int:
        with self._guarded():
            cursor = self._run(sql)
            count = cursor.rowcount
            while cursor.nextset():  # an error of a later statement of a batch shows only here
                pass
            cursor.close()
        return count

    def _commit(self) -> None:
        try:
            # a limit that cuts a COMMIT leaves nobody knowing whether it was done
            with self._statements_take(0):
                self.execute("COMMIT")
        except Unreachable as error:
            raise unknown_outcome(error) from error

    def define(self, *statements: str) -> None:
        for statement in statements:
            try:
                self.execute(statement)
            except BackfillError as error:
                if not is_twin(error):
                    raise

    def _refuse_write(self, sql: str) -> None:
        if self._read_only:
            refuse_write(self.spelling.dialect, sql, transactions=True)

    def fetch(self, sql: str) -> list[tuple[Any, ...]]:
        self._refuse_write(sql)
        with self._guarded():
            cursor = self._run(sql)
            rows = [tuple(row) for row in cursor.fetchall()]
            cursor.close()
        return [tuple(_utc(value) for value in row) for row in rows]

    def fetch_arrow(self, sql: str) -> pa.Table:
        self._refuse_write(sql)
        with self._guarded():
            cursor = self._run(sql)
            data = cursor.arrow()
            cursor.close()
        return in_utc(data)

    def columns_of(self, relation: str) -> dict[str, str] | None:
        """Ask the catalog for a table; of a query, the types of its result as Arrow has them.

        A cursor's description gives Python's types, which do not tell a wall clock from an instant.
        """
        if not relation.startswith("("):
            return self._columns_of_table(relation)
        try:
            return column_types(
                self.spelling, self.fetch_arrow(f"SELECT TOP (0) * FROM {relation}")
            )
        except MissingTable:
            return None

    def _columns_of_table(self, relation: str) -> dict[str, str] | None:
        """Ask the catalog, which alone tells datetime from datetime2 and how long a text may be."""
        prefix = policies.catalog_of(relation)
        found = self.fetch(
            f"SELECT c.name, t.name, c.max_length, c.precision, c.scale FROM {prefix}sys.columns AS c"
            f" JOIN {prefix}sys.types AS t ON t.user_type_id = c.user_type_id"
            f" WHERE c.object_id = OBJECT_ID({text(self.spelling, relation)}) ORDER BY c.column_id"
        )
        return {name: spelled_type(*kind) for name, *kind in found} or None

    def stage_arrow(self, name: str, data: pa.Table) -> str:
        relation = self._new_stage(name)
        data = writable(self.spelling, data)
        columns = stage_columns(self.spelling, data)
        self.execute(f"CREATE TABLE {relation} ({columns}){self._traits.table_options}")
        if data.num_rows:
            copy = self._copy if self._engine.target.bulk_load == "copy" else self._insert
            copy(relation, data)
        return relation

    def _copy(self, relation: str, data: pa.Table) -> None:
        """Bring rows by the bulk protocol, on a connection that the driver opens for it."""
        with self._guarded(numbered=False), self._open_connection.cursor() as cursor:
            done = cursor.bulkcopy_arrow(
                relation,
                data,
                timeout=round(self._engine.target.statement_limit),
                column_mappings=data.column_names,
                keep_nulls=True,
            )
        if done["rows_copied"] != data.num_rows:
            raise WriteFailed(
                "the rows were not written",
                f"{data.num_rows} were sent and {done['rows_copied']} arrived in the stage",
                "Launch this partition again",
            )

    def _insert(self, relation: str, data: pa.Table) -> None:
        """Bring rows as values of one INSERT, which the driver repeats: where the bulk protocol is not let through."""
        marks = ", ".join("?" * data.num_columns)
        rows = list(zip(*(column.to_pylist() for column in data.columns), strict=True))
        with self._guarded(), self._open_connection.cursor() as cursor:
            cursor.executemany(f"INSERT INTO {relation} VALUES ({marks})", rows)

    def stage_select(self, name: str, sql: str) -> str:
        relation = self._new_stage(name)
        ctes, query = apart(sql)
        self._send(self._traits.stage.format(name=relation, ctes=ctes, sql=query))
        return relation

    def _new_stage(self, name: str) -> str:
        if not self._has_swept:
            self.define(create_schema(self.spelling, claims.STAGES))
            self._sweep()
            self._has_swept = True
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
                self._drop(name)

    def _stage(self, name: str) -> str:
        return f"{quoted(self.spelling, claims.STAGES)}.{quoted(self.spelling, name)}"

    def drop_stage(self, name: str) -> None:
        if self._connection is None or name not in self._stages:
            return
        self._drop(name)
        self._stages.discard(name)

    def _drop(self, name: str) -> None:
        stage = self._stage(name)
        self._send(
            self.spelling.drop_table.format(name=stage, name_text=text(self.spelling, stage))
        )

    def prepare(self, claim: Claim) -> None:
        """Make the row that will be claimed, and refuse what cannot be: both are no matter of a transaction's."""
        self._refuse_hidden(claim)
        relation = claims.claim_table(self.spelling, claim, self.database)
        if self._traits.locks or relation in self._claim_tables:
            return
        if self.columns_of(relation) is None:
            statements = (
                create_schema(self.spelling, claims.STAGES),
                *claims.making_claim(self.spelling, claim, relation),
            )
            try:
                self.define(*statements)
            except MissingRight as error:
                raise MissingRight(
                    f"{claim.label} has no claim row, and it cannot be made",
                    error.why,
                    f"Let somebody with the right run once: {'; '.join(statements)}",
                ) from error
        self._claim_tables.add(relation)

    def _refuse_hidden(self, claim: Claim) -> None:
        """Raise where the claim is on no table, or on one of which a policy may hide rows."""
        self._looked_at.add(claim.relation)
        try:
            found = self.fetch(policies.nature(self.spelling, claim.relation))
        except (MissingRight, MissingTable, WriteFailed) as error:
            self._tell_of_policies(claim, error.why)
            return
        for kind, policy in found:
            if (beyond := policies.KINDS_BEYOND_A_CLAIM.get(str(kind).strip())) is not None:
                raise DeclarationError(
                    f"{claim.label} cannot be written, and everything is as it was", *beyond
                )
            if policy is not None and not self._engine.target.sees_all_rows:
                raise HiddenRows(
                    f"{claim.label} was left as it was",
                    f"the security policy {policy} may hide rows of it from this login, and what is hidden would survive"
                    " the DELETE and come twice",
                    "Let the policy's function pass this login and write sees_all_rows=yes into the warehouse URL, or"
                    " turn the policy off (ALTER SECURITY POLICY ... WITH (STATE = OFF)) while it writes",
                )
        if found and not self._would_see(claim):
            self._tell_of_policies(claim, "it may not see the policies of the database")

    def _would_see(self, claim: Claim) -> bool:
        """Tell whether a policy would have been shown; the rights in another database cannot be asked from here."""
        if policies.catalog_of(claim.relation):
            return False
        if self._sees_policies is None:
            self._sees_policies = False
            with contextlib.suppress(MissingRight, MissingTable, WriteFailed):
                self._sees_policies = self.fetch(policies.seeing())[0][0] > 0
        return bool(self._sees_policies)

    def _tell_of_policies(self, claim: Claim, why: str) -> None:
        if not self._engine.target.sees_all_rows and not self._read_only and not self._has_told:
            self._has_told = True
            self._report(
                f"Whether a security policy hides rows of {claim.label} from this login is not known ({why}); those that"
                " are hidden would come twice. GRANT VIEW DEFINITION to it, or write sees_all_rows=yes into the"
                " warehouse URL."
            )

    def claim(self, claim: Claim) -> None:
        """Take the locks, or the row; it comes first in a transaction, so starting that again loses nothing."""
        if self._read_only:
            raise opened_to_read(f"{claim.label} cannot be written")
        if claim.relation not in self._looked_at:
            # nothing was done in the transaction yet
            self.execute("ROLLBACK")
            self.prepare(claim)
            self._begin()
        held = self._locked(claim) if self._traits.locks else self._rowed(claim)
        if held is not None:
            how = (
                f"it still was after {self._engine.target.wait_seconds:g} s"
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
        wait = self._engine.target.wait_seconds
        first = min(wait, _TELL_AFTER_SECONDS)
        code, lock = self._lock(claim, first)
        if code == -1 and wait > first:  # its time is up
            self._report(
                f"{claim.label} is being rewritten by {self._holder(lock)}: waiting, up to {wait - first:.0f} s more."
            )
            code, lock = self._lock(claim, wait - first)
        return None if code >= 0 else self._holder(lock)

    def _lock(self, claim: Claim, seconds: float) -> tuple[int, str]:
        """Return the code of sp_getapplock, and the lock that it is about; the limit of statements does not count here."""
        try:
            with self._statements_take(0):
                found = self.fetch(claims.locking(self.spelling, claim, round(seconds * 1000)))
        except BackfillError:
            # the batch ended before its last words, and nobody would be told any more how many rows were touched
            with contextlib.suppress(BackfillError):
                self._send("SET NOCOUNT OFF")
            raise
        code, lock = int(found[0][0]), str(found[0][1])
        if code < _VICTIM:
            self._doomed = WriteFailed(
                f"{claim.label} was left as it was",
                f"its lock could not be asked for (sp_getapplock says {code})",
                "Launch this partition again; if it fails so again, look whether the login may EXECUTE sp_getapplock",
            )
            raise self._doomed
        return code, lock

    @contextlib.contextmanager
    def _statements_take(self, seconds: int) -> Generator[None, None, None]:
        """Let each statement take `seconds` at most in the body (0: for ever)."""
        connection = self._open_connection
        connection.timeout = seconds
        try:
            yield
        finally:
            connection.timeout = round(self._engine.target.statement_limit)

    def _holder(self, lock: str) -> str:
        """Say who holds a lock, asked apart: not to be allowed to ask would undo the transaction that waits."""
        query, found = claims.holding(self.spelling, lock), []
        with contextlib.suppress(BackfillError), self._engine.session(read_only=True) as other:
            found = other.fetch(query)
        names = [_named(row[0]) for row in found]
        return " or ".join(dict.fromkeys(names)) or "another writer"

    def _rowed(self, claim: Claim) -> str | None:
        relation = claims.claim_table(self.spelling, claim, self.database)
        began = time.monotonic()
        try:
            with self._statements_take(max(1, round(self._engine.target.wait_seconds))):
                touched = self.execute(claims.taking(self.spelling, claim, relation))
        except (SliceBusy, LimitReached):
            self._report(f"{claim.label} was claimed in vain for {time.monotonic() - began:.0f} s.")
            return "another writer"
        if touched == 0:
            self._doomed = WriteFailed(
                f"{claim.label} was left as it was",
                f"{relation} has lost the row that is claimed",
                "Let somebody drop that table while nobody writes: it is made again",
            )
            raise self._doomed
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
        cursor.execute(hoisted(sql), use_prepare=False)
        return cursor

    @contextlib.contextmanager
    def _guarded(self, *, numbered: bool = True) -> Generator[None, None, None]:
        """Say the driver's errors as ours, and remember the first: a transaction cannot go on after one."""
        try:
            yield
        except BackfillError:
            raise
        except Exception as error:
            ours = told(error, self._number_of if numbered else None)
            self._doomed = self._doomed or ours
            raise ours from shown_cause(error)

    def _number_of(self) -> int:
        """Ask the server for the number of the error that it has just told: the driver keeps its words alone."""
        with contextlib.suppress(Exception), self._open_connection.cursor() as cursor:
            cursor.execute("SELECT @@ERROR", use_prepare=False)
            return int(cursor.fetchone()[0])
        return 0


def _named(told: object) -> str:
    """Return the name that a session gave itself, in the bytes that the server keeps of it."""
    name = told.decode("ascii", "replace") if isinstance(told, bytes) else str(told or "")
    return name.strip("\x00").removeprefix("backfill_assets").strip() or "another writer"


def _utc(value: Any) -> Any:
    if isinstance(value, datetime) and value.tzinfo is not None:
        return value.astimezone(timezone.utc)
    return value
