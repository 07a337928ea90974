"""PostgreSQL through psycopg 3: rows come and go by COPY, stages are temporary tables, claims advisory locks.

Temporary tables and advisory locks belong to the connection: a writer that is killed leaves neither behind.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Generator
from contextlib import AbstractContextManager
from datetime import datetime
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, unquote_plus

from backfill_assets.engines.drivers import driver
from backfill_assets.engines.limited import Limited
from backfill_assets.engines.postgres_claims import (
    KINDS_BEYOND_A_CLAIM,
    claimed_kind,
    claiming,
    holding,
    named,
)
from backfill_assets.engines.postgres_copy import arrow_from_csv, csv_chunks, typed, writable
from backfill_assets.engines.postgres_errors import lost_race, told, unreachable
from backfill_assets.engines.postgres_hash import COLUMN_HASH
from backfill_assets.engines.postgres_pooling import refuse_pool_of_transactions
from backfill_assets.engines.postgres_views import OF_VIEWS
from backfill_assets.engines.protocol import Claim, Report, Spelling, silence
from backfill_assets.engines.sql import quoted, text
from backfill_assets.engines.transactions import Transactions, opened
from backfill_assets.engines.wording import unknown_outcome
from backfill_assets.errors import (
    DeclarationError,
    MissingTable,
    SliceBusy,
    Unreachable,
    WriteFailed,
    shown_cause,
    without_secrets,
)

if TYPE_CHECKING:
    import psycopg
    import pyarrow as pa

SPELLING = Spelling(
    dialect="postgres",
    identity="SELECT system_identifier, current_database() FROM pg_control_system()",
    literals={
        "date": "DATE '{}'",
        "timestamp": "TIMESTAMP '{}'",
        "timestamptz": "TIMESTAMPTZ '{}'",
        "int_yyyymmdd": "{}",
        "iso_text": "'{}'",
    },
    row_hash="({columns})",
    column_hash=COLUMN_HASH,
    hash_joint=" # ",
    hash_sum="CAST(coalesce(sum({hash}), 0) AS TEXT)",
    try_cast="CAST({value} AS {type})",
    case_sensitive=True,
    longest_name=63,
    index="CREATE INDEX IF NOT EXISTS {name} ON {table} ({columns})",
    computed="SELECT attname FROM pg_catalog.pg_attribute WHERE attrelid = to_regclass({table}) AND attnum > 0"
    " AND NOT attisdropped AND (attgenerated <> '' OR attidentity = 'a')",
    who_am_i="SELECT current_user",
    limits="SELECT current_setting('lock_timeout'), current_setting('statement_timeout')",
    slow="SELECT pg_sleep(60)",
    grants={
        "rows": "GRANT USAGE ON SCHEMA {schema} TO {role}; GRANT {right} ON {table} TO {role}",
        "stage": "GRANT TEMPORARY ON DATABASE {database} TO {role}",
        "make": "GRANT USAGE, CREATE ON SCHEMA {schema} TO {role}",
        "schema": "GRANT CREATE ON DATABASE {database} TO {role}",
    },
    ddl_rolls_back=True,
    exact_text='{column} COLLATE "C"',
    wide={"integer": "bigint", "decimal": "numeric", "float": "double precision"},
    canonical={
        "integer": "CAST({column} AS text)",
        "decimal": "CAST(trim_scale({column}) AS text)",
        "float": "CAST({column} AS text)",
        "text": '{column} COLLATE "C"',
        "date": "CAST({column} AS text)",
        "timestamp": "CAST({column} AS text)",
        "timestamptz": "CAST({column} AT TIME ZONE 'UTC' AS text)",
        "time": "CAST({column} AS text)",
        "boolean": "CAST({column} AS text)",
        "uuid": "CAST({column} AS text)",
        "binary": "encode({column}, 'hex')",
    },
    text_number="CAST(CAST('x' || substr(md5(convert_to({text}, 'UTF8')), 1, 15) AS bit(60)) AS bigint)",
    # hash_numeric knows no sign, hashint8 folds 64 bits to 32, and a float 0 is its seed
    row_text_hash='hashtextextended({text} COLLATE "C", 0)',
    view_rolls_back=True,
    **OF_VIEWS,
)
_TYPE = "format_type(atttypid, atttypmod)"
# a domain is what it is made of, however often it was made anew, as it is in a query's result
_TYPE_BENEATH = (
    "(WITH RECURSIVE beneath (kind, modifier, depth) AS (SELECT atttypid, atttypmod, 0 UNION ALL"
    " SELECT typbasetype, CASE WHEN modifier = -1 THEN typtypmod ELSE modifier END, depth + 1 FROM beneath"
    " JOIN pg_catalog.pg_type ON oid = kind AND typtype = 'd')"
    " SELECT format_type(kind, modifier) FROM beneath ORDER BY depth DESC LIMIT 1)"
)
_OPTIONS = {"lock_wait": "600", "statement_timeout": None}
_TELL_AFTER_SECONDS = 5.0
_DDL_PATIENCE_SECONDS = 2.0
_DDL_PAUSE_SECONDS = 0.5
_LONGEST_APPLICATION_NAME = 63
# a role's or a database's own defaults would otherwise change what literals mean and how values are shown
_SETTINGS = {
    "TimeZone": "'UTC'",
    "DateStyle": "'ISO, MDY'",
    "standard_conforming_strings": "on",
    "extra_float_digits": "1",
    "bytea_output": "'hex'",
    "IntervalStyle": "'postgres'",
    "client_min_messages": "warning",
}


class PostgresEngine(Limited):
    """`postgresql://user:password@host/database`, with libpq's own options and two of ours, in seconds.

    `lock_wait` (600): how long to wait for another writer. `statement_timeout`: how long one statement may run.
    """

    def __init__(self, url: str) -> None:
        self.shown = without_secrets(url)
        self.spelling = SPELLING
        url = url.strip()
        head, _, query = url.partition("?")
        _refuse_broken_address(url, head)
        options = dict(_OPTIONS)
        theirs: list[str] = []
        for pair in query.split("&") if query else ():
            name, _, value = pair.partition("=")
            if name in options:
                options[name] = unquote_plus(value)
            else:
                theirs.append(pair)
        self.conninfo = head + ("?" + "&".join(theirs) if theirs else "")
        self.wait_seconds = self._seconds("lock_wait", options["lock_wait"])
        # found out when the first session opens, before it sets anything
        self.has_sessions = False
        limit = options["statement_timeout"]
        # 0 is no limit, as it is to PostgreSQL itself and to the other engines
        self.statement_limit = (
            None if limit is None else self._seconds("statement_timeout", limit) or None
        )

    def _seconds(self, name: str, value: str | None) -> float:
        with contextlib.suppress(TypeError, ValueError):
            if 0 <= (seconds := float(value or "")) <= 2_000_000:
                return seconds
        raise DeclarationError(
            f"the warehouse URL {self.shown!r} cannot be used",
            f"{name}={value!r} is no number of seconds",
            f"Write for example {name}=600",
        )

    @property
    def place(self) -> str:
        """The database's name; empty where the URL leaves it to the environment."""
        return self._told("dbname") or unquote_plus(self._head.partition("/")[2])

    @property
    def address(self) -> str:
        """Hosts and ports as the URL gives them."""
        hosts = self._head.partition("/")[0].rpartition("@")[2]
        told = [value for name in ("host", "hostaddr", "port") if (value := self._told(name))]
        return " ".join([hosts, *told])

    @property
    def _head(self) -> str:
        return self.conninfo.partition("://")[2].partition("?")[0]

    def _told(self, option: str) -> str:
        return dict(parse_qsl(self.conninfo.partition("?")[2])).get(option, "")

    def session(
        self, *, who: str = "", read_only: bool = False, report: Report | None = None
    ) -> AbstractContextManager[PostgresSession]:
        """Connect, and disconnect at the end; what was not committed by then is rolled back."""
        return opened(PostgresSession(self, who, read_only, report or silence))


class PostgresSession(Transactions):
    """One connection, each statement its own transaction except inside `transaction()`."""

    def __init__(self, engine: PostgresEngine, who: str, read_only: bool, report: Report) -> None:
        self.spelling = SPELLING
        self._engine = engine
        self._who, self._read_only, self._report = who, read_only, report
        self._connection: psycopg.Connection[tuple[Any, ...]] | None = None

    def open(self) -> None:
        """Connect, and undo the defaults of the role, the database and the environment that would matter."""
        psycopg = driver("psycopg", "PostgreSQL", "psycopg[binary]")
        name = (
            f"backfill_assets {self._who}".strip()
            .encode()[:_LONGEST_APPLICATION_NAME]
            .decode(errors="ignore")
        )

        def connect() -> psycopg.Connection[tuple[Any, ...]]:
            return psycopg.connect(
                self._engine.conninfo,
                autocommit=True,
                prepare_threshold=None,
                application_name=name,
                client_encoding="utf8",
            )

        try:
            self._connection = connect()
            if not self._engine.has_sessions:
                refuse_pool_of_transactions(self._connection, connect, self._engine.shown)
                self._engine.has_sessions = True
        except psycopg.Error as error:
            # its text may show a piece of a password
            raise unreachable(error, self._engine.shown) from None
        settings = {**_SETTINGS, "lock_timeout": str(_milliseconds(self._engine.wait_seconds))}
        if self._engine.statement_limit is not None:
            settings["statement_timeout"] = str(_milliseconds(self._engine.statement_limit))
        if self._read_only:
            settings["default_transaction_read_only"] = "on"
        self.execute("; ".join(f"SET {name} = {value}" for name, value in settings.items()))

    def close(self) -> None:
        """Disconnect; the server rolls back and drops the stages of whoever is gone."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def breathe(self) -> None:
        """Do nothing: an idle connection keeps nobody out."""

    @property
    def database(self) -> str:
        return self._open_connection.info.dbname

    def execute(self, sql: str) -> int:
        with self._guarded():
            return self._run(sql).rowcount

    def define(self, *statements: str) -> None:
        for statement in statements:
            self._define(statement)

    def _define(self, sql: str) -> None:
        """Run DDL, asking again and again: whoever waits to have a table alone keeps all readers waiting behind."""
        patience = _milliseconds(min(_DDL_PATIENCE_SECONDS, self._engine.wait_seconds))
        until = time.monotonic() + self._engine.wait_seconds
        while True:
            try:
                with self._guarded(), contextlib.suppress(*lost_race()):
                    self._run(f"SET LOCAL lock_timeout = {patience}; {sql}")
                return
            except SliceBusy:
                if time.monotonic() > until:
                    raise
            time.sleep(_DDL_PAUSE_SECONDS)

    def fetch(self, sql: str) -> list[tuple[Any, ...]]:
        with self._guarded():
            return self._run(sql).fetchall()

    def fetch_arrow(self, sql: str) -> pa.Table:
        names, kinds = self._shape(sql)
        statement = f"COPY (\n{sql}\n) TO STDOUT (FORMAT csv)".encode()
        with (
            self._guarded(),
            self._open_connection.cursor() as cursor,
            cursor.copy(statement) as copy,
        ):
            rows = b"".join(bytes(block) for block in copy)
        return arrow_from_csv(rows, names, kinds)

    def columns_of(self, relation: str) -> dict[str, str] | None:
        if relation.lstrip().startswith("("):
            return self._columns_of_query(relation)
        there = (
            "FROM pg_catalog.pg_attribute JOIN pg_catalog.pg_type AS t ON t.oid = atttypid"
            f" WHERE attrelid = to_regclass({text(SPELLING, relation)}) AND attnum > 0 AND NOT attisdropped ORDER BY attnum"
        )
        found = self.fetch(f"SELECT attname, {_TYPE}, typtype = 'd' {there}")
        if any(is_domain for _, _, is_domain in found):
            found = self.fetch(f"SELECT attname, {_TYPE_BENEATH}, TRUE {there}")
        return {str(column): str(kind) for column, kind, _ in found} or None

    def _columns_of_query(self, relation: str) -> dict[str, str] | None:
        try:
            names, kinds = self._shape(f"SELECT * FROM {relation}")
        except MissingTable:
            return None
        wanted = ", ".join(f"format_type({oid}, {modifier})" for oid, modifier in kinds)
        return (
            dict(zip(names, map(str, self.fetch(f"SELECT {wanted}")[0]), strict=True))
            if names
            else {}
        )

    def _shape(self, sql: str) -> tuple[list[str], list[tuple[int, int]]]:
        """Return the names of a query's columns, and the OID and modifier of their types."""
        with self._guarded():
            cursor = self._run(f"SELECT * FROM (\n{sql}\n) AS shape LIMIT 0")
            result = cursor.pgresult
            assert result is not None
            kinds = [(result.ftype(n), result.fmod(n)) for n in range(result.nfields)]
            return [column.name for column in cursor.description or ()], kinds

    def stage_arrow(self, name: str, data: pa.Table) -> str:
        rows = writable(data)
        columns = ", ".join(
            f"{quoted(SPELLING, column)} {kind}" for column, kind in typed(rows).items()
        )
        relation = self._make_stage(name, f"({columns})")
        statement = f"COPY {relation} FROM STDIN (FORMAT csv)".encode()
        with (
            self._guarded(),
            self._open_connection.cursor() as cursor,
            cursor.copy(statement) as copy,
        ):
            for chunk in csv_chunks(rows):
                copy.write(chunk)
        return relation

    def stage_select(self, name: str, sql: str) -> str:
        return self._make_stage(name, f"AS {sql}")

    def _make_stage(self, name: str, what: str) -> str:
        # nothing is lost when a temporary table is lost with the server, so its making need not wait for the disk
        stage = quoted(SPELLING, name)
        self.execute(f"SET LOCAL synchronous_commit = off; CREATE TEMPORARY TABLE {stage} {what}")
        return f"pg_temp.{stage}"

    def drop_stage(self, name: str) -> None:
        if self._connection is not None and not self._connection.closed:
            stage = f"pg_temp.{quoted(SPELLING, name)}"
            self.execute(f"SET LOCAL synchronous_commit = off; DROP TABLE IF EXISTS {stage}")

    def _begin(self) -> None:
        # each statement must see what was committed while we waited for the claim
        self.execute("BEGIN ISOLATION LEVEL READ COMMITTED")

    def _commit(self) -> None:
        try:
            with self._guarded():
                done = self._run("COMMIT").statusmessage
        except Unreachable as error:
            raise unknown_outcome(error) from error
        if done != "COMMIT":
            raise WriteFailed(
                "the slice is as it was",
                "a statement of the transaction had failed, and COMMIT rolled it back",
                "Launch this partition again",
            )

    def claim(self, claim: Claim) -> None:
        wait = self._engine.wait_seconds
        if wait > _TELL_AFTER_SECONDS:
            held = self._busy_after(claim, _TELL_AFTER_SECONDS)
            if held is None:
                return
            wait -= _TELL_AFTER_SECONDS
            self._report(
                f"{claim.label} is being rewritten by {held}: waiting, up to {wait:.0f} s more."
            )
            self._begin()
        held = self._busy_after(claim, wait)
        if held is not None:
            self._doomed = SliceBusy(
                f"{claim.label} is being rewritten by {held}, so nothing was changed",
                f"it still was after {self._engine.wait_seconds:g} s",
                "Let that run finish, then launch this partition again",
            )
            raise self._doomed

    def _refuse_kind(self, claim: Claim, kind: str | None) -> None:
        """Raise where the claim is not on a table: its writers could meet others beneath it unseen."""
        if kind in KINDS_BEYOND_A_CLAIM:
            why, do = KINDS_BEYOND_A_CLAIM[kind]
            self._doomed = DeclarationError(
                f"{claim.label} cannot be written, and everything is as it was", why, do
            )
            raise self._doomed

    def _busy_after(self, claim: Claim, seconds: float) -> str | None:
        """Return None once the claim is ours; where it is not in time, roll back and return who has it."""
        import psycopg

        began = time.monotonic()
        limit = self._engine.statement_limit
        after = "DEFAULT" if limit is None else str(_milliseconds(limit))
        with self._guarded():
            try:
                # one limit for all locks together: lock_timeout would be granted to each day anew
                found = self._run(claiming(SPELLING, claim, _milliseconds(seconds), after))
                self._refuse_kind(claim, claimed_kind(found))
                return None
            except (psycopg.errors.LockNotAvailable, psycopg.errors.QueryCanceled):
                if time.monotonic() - began < seconds * 0.9:
                    raise  # somebody cancelled it, and waiting on would ignore that
                self._run("ROLLBACK")
                return named(self._run(holding(SPELLING, claim)).fetchone())

    def clock(self) -> datetime:
        return self.fetch("SELECT clock_timestamp()")[0][0]

    @property
    def _open_connection(self) -> psycopg.Connection[tuple[Any, ...]]:
        if self._connection is None:
            raise Unreachable(
                "the database is closed", "its session has ended", "Open a new session"
            )
        return self._connection

    def _run(self, sql: str) -> psycopg.Cursor[tuple[Any, ...]]:
        return self._open_connection.execute(sql.encode())

    @contextlib.contextmanager
    def _guarded(self) -> Generator[None, None, None]:
        """Say the driver's errors as ours, and remember the first: a transaction cannot go on after one."""
        import psycopg

        try:
            yield
        except psycopg.Error as error:
            ours = told(error)
            self._doomed = self._doomed or ours
            raise ours from shown_cause(error)


def _refuse_broken_address(url: str, head: str) -> None:
    """Refuse what libpq would split elsewhere than its author meant: its message would show a part of the password."""
    authority, _, database = head.partition("://")[2].partition("/")
    hosts = authority.rpartition("@")[2]
    ports = [host.rpartition(":")[2] for host in hosts.split(",") if ":" in host]
    why = None
    if any(port and not port.isdigit() and not port.endswith("]") for port in ports):
        why = "what stands behind the host is no port"
    elif authority.count("@") > 1 or "@" in database:
        why = "it has an @ too many, and nobody can tell where the host begins"
    elif any(letter.isspace() for letter in url):
        why = "it has a space in it"
    if why is not None:
        raise DeclarationError(
            "the warehouse URL cannot be used",
            why,
            "Write postgresql://user:password@host:5432/database, with / ? # @ and spaces in a password"
            " percent-encoded (%2F %3F %23 %40 %20)",
        )


def _milliseconds(seconds: float) -> int:
    return max(1, round(seconds * 1000))  # 0 would mean for ever
