"""Snowflake through its own connector: rows come by PUT and COPY into a transient table, claims are rows of a table.

A failed statement leaves the transaction open here and DDL commits it, so that everything is made before BEGIN and
ROLLBACK is always said. Stages are transient tables in a schema of their own: what a killed writer left there is
dropped by the next one after a day.
"""

from __future__ import annotations

import contextlib
import json
import re
import tempfile
import time
import uuid
from collections.abc import Callable, Generator, Mapping
from contextlib import AbstractContextManager
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any

from backfill_assets.engines.claim_rows import buckets_of, claims_table, resolved
from backfill_assets.engines.drivers import driver
from backfill_assets.engines.limited import Limited
from backfill_assets.engines.protocol import Claim, Report, Spelling, silence
from backfill_assets.engines.reading import opened_to_read, refuse_write
from backfill_assets.engines.snowflake_claims import claiming, holders, making, note
from backfill_assets.engines.snowflake_cost import attributed, estimated
from backfill_assets.engines.snowflake_errors import is_lock, lost_race, told, unreachable
from backfill_assets.engines.snowflake_types import (
    sql_type,
    table_of_arrow,
    table_of_rows,
    type_name,
    writable,
)
from backfill_assets.engines.snowflake_url import Options, options_from, options_of
from backfill_assets.engines.sql import quoted, text
from backfill_assets.engines.sql import told as told_name
from backfill_assets.engines.transactions import Transactions, opened
from backfill_assets.engines.wording import unknown_outcome
from backfill_assets.errors import (
    BackfillError,
    DeclarationError,
    MissingRight,
    MissingTable,
    SchemaMismatch,
    SliceBusy,
    Unreachable,
    WriteFailed,
    shown_cause,
    without_secrets,
)

if TYPE_CHECKING:
    import pyarrow as pa


def _unpadded(text: str) -> str:
    """Return a number or a time as text without zeros behind its last digit."""
    return f"CASE WHEN {text} LIKE '%.%' THEN REGEXP_REPLACE({text}, '[.]?0*$', '') ELSE {text} END"


_MOMENT = _unpadded("TO_CHAR({column}, 'YYYY-MM-DD HH24:MI:SS.FF9')")
_CANONICAL = {
    "integer": "CAST({column} AS VARCHAR)",
    "decimal": _unpadded("CAST({column} AS VARCHAR)"),
    "float": "CASE CAST({column} AS VARCHAR) WHEN 'inf' THEN 'Infinity' WHEN '-inf' THEN '-Infinity'"
    " ELSE CAST({column} AS VARCHAR) END",
    "text": "{column}",
    "date": "TO_CHAR({column}, 'YYYY-MM-DD')",
    "timestamp": _MOMENT,
    "timestamptz": _MOMENT.format(
        column="CAST(CONVERT_TIMEZONE('UTC', {column}) AS TIMESTAMP_NTZ)"
    ),
    "boolean": "CAST({column} AS VARCHAR)",
    "binary": "lower(HEX_ENCODE({column}))",
}
SPELLING = Spelling(
    dialect="snowflake",
    identity="SELECT current_account(), current_region(), current_database()",
    literals={
        "date": "DATE '{}'",
        "timestamp": "'{}'::TIMESTAMP_NTZ",
        "timestamptz": "'{}'::TIMESTAMP_TZ",
        "int_yyyymmdd": "{}",
        "iso_text": "'{}'",
    },
    # exact sums: HASH has 64 bits, a sum of them 38 digits
    row_hash="CAST(HASH({columns}) AS NUMBER(20, 0))",
    column_hash={"": "{column}"},
    hash_joint=", ",
    hash_sum="CAST(coalesce(sum({hash}), 0) AS VARCHAR)",
    try_cast="CAST({value} AS {type})",
    # names that differ in case only are taken for one, and refused where they are two
    case_sensitive=False,
    longest_name=255,
    claims_are_rows=True,
    who_am_i="SELECT CURRENT_ROLE()",
    grants={
        "rows": (
            "GRANT USAGE ON SCHEMA {schema} TO ROLE {role};"
            " GRANT {right} ON TABLE {table} TO ROLE {role}"
        ),
        "stage": "GRANT USAGE, CREATE TABLE, CREATE STAGE ON SCHEMA BACKFILL TO ROLE {role}",
        "make": "GRANT USAGE, CREATE TABLE ON SCHEMA {schema} TO ROLE {role}",
        "schema": "GRANT USAGE, CREATE SCHEMA ON DATABASE {database} TO ROLE {role}",
    },
    default_schema="public",
    count_rows_apart="count(DISTINCT HASH({columns}))",
    epoch_seconds="DATE_PART(EPOCH_MICROSECOND, {column}) / 1000000",
    day_of_instant="CAST(CONVERT_TIMEZONE({zone}, {column}) AS DATE)",
    folds_upper=True,
    scale_0_is_whole=True,
    view=(
        "SELECT 'view', view_definition, CASE is_secure WHEN 'YES' THEN ' SECURE' ELSE '' END"
        " FROM {database}.information_schema.views"
        " WHERE table_schema = {schema_text} AND table_name = {name_text} UNION ALL"
        " SELECT lower(table_type), NULL, '' FROM {database}.information_schema.tables"
        " WHERE table_schema = {schema_text} AND table_name = {name_text} AND table_type <> 'VIEW'"
    ),
    replace_view="CREATE OR REPLACE{options} VIEW {view} COPY GRANTS AS {query}",
    view_risk="its comment, its tags and the policies that are set on the view itself are lost: set them again",
    wide={"integer": "NUMBER(38, 0)", "decimal": "NUMBER(38, {scale})", "float": "FLOAT"},
    exact_text="COLLATE({column}, '')",
    canonical=_CANONICAL,
    text_number="TO_NUMBER(SUBSTR(MD5({text}), 1, 15), 'XXXXXXXXXXXXXXX')",
)
_STAGE = "backfill_stage_"
_PART = re.compile(r'"(?:[^"]|"")*"')
_TELL_AFTER_SECONDS = 5.0
_ASK_AGAIN_SECONDS = 0.05
_SHARE_OF_A_WAIT = 0.8
# what a claim may take beyond its wait for others, whatever the limit of statements
_CLAIM_SECONDS = 60
_ORPHANS_AFTER = timedelta(days=1)
_LONGEST_TAG = 2000
_ROWS_AT_ONCE = 5_000
# what an account's, a user's or a warehouse's own defaults would otherwise change
_SETTINGS: dict[str, Any] = {
    "TIMEZONE": "UTC",
    "TIMESTAMP_TYPE_MAPPING": "TIMESTAMP_NTZ",
    "QUOTED_IDENTIFIERS_IGNORE_CASE": False,
    "AUTOCOMMIT": True,
    "TRANSACTION_ABORT_ON_ERROR": True,
    "ABORT_DETACHED_QUERY": True,
    # many values the connector would otherwise bring by PUT, also where bulk_load=insert asks for none
    "CLIENT_STAGE_ARRAY_BINDING_THRESHOLD": 0,
    "BINARY_INPUT_FORMAT": "HEX",
    "DATE_INPUT_FORMAT": "AUTO",
    "TIMESTAMP_INPUT_FORMAT": "AUTO",
}


class SnowflakeEngine(Limited):
    """`snowflake://user:password@account/database/schema?warehouse=WH&role=R`, with the connector's options and ours.

    Ours: `lock_wait` (600) and `statement_timeout` (none) in seconds, `stage_schema` (backfill), where stages and
    claims are, `warehouse_size`, by which credits are estimated.
    """

    def __init__(self, url: str) -> None:
        self._set(options_of(url), without_secrets(url))

    @classmethod
    def of(cls, resource: Any, **options: str) -> SnowflakeEngine:
        """Return the engine of Dagster's `SnowflakeResource`; `options` are ours, as a URL gives them.

        The resource's own arguments for the connector are taken, so that every way to authenticate works as it does
        there, and sessions are opened and closed by us.
        """
        # its one list of arguments, with secrets and private keys resolved
        arguments: Mapping[str, Any] = resource._connection_args
        engine = cls.__new__(cls)
        found = options_from(arguments, **options)
        engine._set(found, f"snowflake://{found.arguments.get('account', '')}/{found.place}")
        return engine

    def _set(self, options: Options, shown: str) -> None:
        self.options, self.shown, self.spelling = options, shown, SPELLING

    @property
    def place(self) -> str:
        """The database; empty where a connection file names it."""
        return self.options.place

    @property
    def address(self) -> str:
        """The account, or the name of the connection in a file."""
        return self.options.address

    def _limit(self, limits: Mapping[str, float]) -> None:
        self.options = replace(self.options, **limits)

    def session(
        self, *, who: str = "", read_only: bool = False, report: Report | None = None
    ) -> AbstractContextManager[SnowflakeSession]:
        """Connect, and disconnect at the end; what was not committed by then is rolled back."""
        return opened(SnowflakeSession(self, who, read_only, report or silence))


class SnowflakeSession(Transactions):
    """One connection, each statement its own transaction except inside `transaction()`."""

    def __init__(self, engine: SnowflakeEngine, who: str, read_only: bool, report: Report) -> None:
        self.spelling = SPELLING
        self._engine, self._options = engine, engine.options
        self._who, self._read_only, self._report = who, read_only, report
        self._connection: Any = None
        self._home = ("", "")
        self._claim: Claim | None = None
        self._claims: dict[str, str] = {}
        self._files: str | None = None
        self._patience: float | None = None
        self._swept = False

    def open(self) -> None:
        """Connect, and undo the defaults of the account, the user and the warehouse that would matter."""
        connector = driver("snowflake.connector", "Snowflake", "backfill-assets[snowflake]")
        arguments = dict(self._options.arguments)
        if "connection_name" not in arguments:
            arguments.setdefault("schema", "PUBLIC")
        theirs: Mapping[str, Any] = arguments.pop("session_parameters", None) or {}
        arguments |= {
            "session_parameters": {**theirs, **_SETTINGS, **self._limits()},
            "autocommit": True,
            "paramstyle": "qmark",
            "arrow_number_to_decimal": True,
        }
        arguments.setdefault("application", "backfill_assets")
        try:
            self._connection = connector.connect(**arguments)
        except (connector.errors.Error, OSError, ValueError) as error:
            # its text may show a piece of a secret
            raise unreachable(error, self._engine.shown) from None
        self._home = (str(self._connection.database or ""), str(self._connection.schema or ""))

    def _limits(self) -> dict[str, Any]:
        wait, limit = self._options.wait_seconds, self._options.statement_limit
        if limit:
            # the limit counts while a statement waits: it would be told as stopped, and not that somebody is in the way
            wait = min(wait, limit * _SHARE_OF_A_WAIT)
        limits: dict[str, Any] = {"QUERY_TAG": self._tag(), "LOCK_TIMEOUT": max(1, int(wait))}
        if limit:
            limits["STATEMENT_TIMEOUT_IN_SECONDS"] = max(1, round(limit))
        return limits

    def close(self) -> None:
        """Disconnect; the service rolls back what is open and drops the session's files."""
        connection, self._connection = self._connection, None
        if connection is not None:
            with contextlib.suppress(Exception):
                connection.close()

    def breathe(self) -> None:
        """Do nothing: an idle connection keeps nobody out."""

    @property
    def database(self) -> str:
        return told_name(SPELLING, self._home[0])

    def execute(self, sql: str) -> int:
        self._refuse_write(sql)
        with self._guarded():
            cursor = self._run(sql)
            counted = sql.lstrip()[:6].upper() in ("INSERT", "DELETE", "UPDATE", "MERGE ")
            return int(cursor.rowcount) if counted and cursor.rowcount is not None else -1

    def define(self, *statements: str) -> None:
        for statement in statements:
            self._patiently(lambda sql=statement: self._define(sql))

    def _define(self, sql: str) -> None:
        import snowflake.connector as connector

        with self._guarded():
            try:
                self._run(sql)
            except connector.errors.Error as error:
                if not lost_race(error):
                    raise
            # making a schema also makes it the session's, and a table without a schema would be another one
            if sql.upper().startswith("CREATE SCHEMA") and all(self._home):
                self._run("USE SCHEMA " + ".".join(_exactly(part) for part in self._home))

    def _patiently(self, act: Callable[[], object]) -> None:
        """Do it again for as long as somebody else is in the way, within `lock_wait`."""
        until = time.monotonic() + self._options.wait_seconds
        while True:
            try:
                act()
                return
            except SliceBusy:
                if time.monotonic() > until:
                    raise
            time.sleep(_ASK_AGAIN_SECONDS)

    def _refuse_write(self, sql: str) -> None:
        if self._read_only:
            refuse_write(SPELLING.dialect, sql, transactions=True)

    def fetch(self, sql: str) -> list[tuple[Any, ...]]:
        self._refuse_write(sql)
        with self._guarded():
            return [tuple(row) for row in self._run(sql).fetchall()]

    def fetch_arrow(self, sql: str) -> pa.Table:
        self._refuse_write(sql)
        with self._guarded():
            cursor = self._run(sql)
            described = cursor.description
            names = [_Described(told_name(SPELLING, column.name), column) for column in described]
            if hasattr(cursor, "fetch_arrow_all"):
                found = cursor.fetch_arrow_all(force_return_table=True)
                return table_of_arrow(found, names)
            return table_of_rows(cursor.fetchall(), names)

    def columns_of(self, relation: str) -> dict[str, str] | None:
        try:
            with self._guarded(), self._open_connection.cursor() as cursor:
                described = cursor.describe(f"SELECT * FROM {relation}")
        except MissingTable:
            return None
        found: dict[str, str] = {}
        for column in described:
            name = told_name(SPELLING, column.name)
            if (
                name == column.name
                and name != name.upper()
                and name.upper() == quoted(SPELLING, name)[1:-1]
            ):
                raise SchemaMismatch(
                    f"{relation} cannot be used",
                    f"its column {name!r} is stored in lower case, and that name means {name.upper()!r} here as it does"
                    " in SQL without quotes",
                    f'Rename it: ALTER TABLE ... RENAME COLUMN "{name}" TO {name.upper()}',
                )
            found[name] = type_name(column)
        return found

    def stage_arrow(self, name: str, data: pa.Table) -> str:
        rows = writable(data)
        schema: Any = rows.schema
        # the columns of the file have plain names, which no side takes for others
        places = [f"C{place}" for place in range(len(schema))]
        columns = ", ".join(
            f"{place} {sql_type(field.type)}" for place, field in zip(places, schema, strict=True)
        )
        relation = self._make_stage(name, f"({columns})", "")
        if rows.num_rows and self._options.bulk_load == "insert":
            self._insert(relation, rows)
        elif rows.num_rows:
            self._copy(relation, rows.rename_columns(places))
        named = ", ".join(
            f"{place} AS {quoted(SPELLING, field.name)}"
            for place, field in zip(places, schema, strict=True)
        )
        return f"(SELECT {named} FROM {relation}) AS rows_staged"

    def _copy(self, relation: str, rows: pa.Table) -> None:
        """Bring rows as one Parquet file through a stage of this session's own, which ends with it."""
        import pyarrow.parquet

        parquet: Any = pyarrow.parquet
        if self._files is None:
            files = f"{quoted(SPELLING, self._options.stage_schema)}.{quoted(SPELLING, f'backfill_files_{uuid.uuid4().hex}')}"
            self.execute(f"CREATE TEMPORARY STAGE {files}")
            self._files = files
        with tempfile.TemporaryDirectory(prefix="backfill") as folder:
            file = Path(folder) / "rows.parquet"
            parquet.write_table(rows, file, compression="zstd")
            # one name, so that there is one file, whatever became of the one before
            self.execute(
                f"PUT 'file://{file.as_posix()}' @{self._files} AUTO_COMPRESS = FALSE OVERWRITE = TRUE"
            )
        files = self.fetch(
            f"COPY INTO {relation} FROM @{self._files}"
            " FILE_FORMAT = (TYPE = PARQUET USE_LOGICAL_TYPE = TRUE BINARY_AS_TEXT = FALSE)"
            " MATCH_BY_COLUMN_NAME = CASE_INSENSITIVE ON_ERROR = ABORT_STATEMENT"
        )
        # one line a file: file, status, rows parsed, rows loaded; a line of one column says that there was none
        loaded = sum(int(file[3]) for file in files if len(file) > 3)
        if loaded != rows.num_rows:
            raise WriteFailed(
                "the rows were not written",
                f"{rows.num_rows} were sent and {loaded} arrived in the stage",
                "Launch this partition again",
            )

    def _insert(self, relation: str, rows: pa.Table) -> None:
        """Bring rows in the statements themselves, as text that the columns' types read: for networks without PUT."""
        marks = ", ".join("?" * rows.num_columns)
        batches: Any = rows.to_batches(max_chunksize=_ROWS_AT_ONCE)
        for batch in batches:
            columns = [
                [_as_text(value) for value in column.to_pylist()] for column in batch.columns
            ]
            with self._guarded(), self._open_connection.cursor() as cursor:
                cursor.executemany(
                    f"INSERT INTO {relation} VALUES ({marks})", list(zip(*columns, strict=True))
                )

    def stage_select(self, name: str, sql: str) -> str:
        return self._make_stage(name, "", f" AS {sql}")

    def _make_stage(self, name: str, columns: str, query: str) -> str:
        self._sweep()
        relation = self._stage(name)
        comment = text(SPELLING, self._note())
        statement = f"CREATE TRANSIENT TABLE {relation} {columns} DATA_RETENTION_TIME_IN_DAYS = 0 COMMENT = {comment}{query}"
        self._within_schema(lambda: self.execute(statement))
        return relation

    def _within_schema(self, act: Callable[[], object]) -> None:
        """Do what needs the schema of stages and claims, and make that where it is not there."""
        schema = quoted(SPELLING, self._options.stage_schema)
        try:
            self._patiently(act)
        except MissingTable as error:
            if schema.strip('"').lower() not in str(error).lower():
                raise
            self.define(f"CREATE SCHEMA IF NOT EXISTS {schema}")
            self._patiently(act)

    def _note(self) -> str:
        now = datetime.now(timezone.utc)
        if self._claim is None:
            told = json.dumps({"who": self._who, "at": now.isoformat(timespec="seconds")})
            return told.replace("'", "\\u0027")  # as in notes of claims
        return note(self._claim, self._resolved(self._claim), self._called(self._claim), now)

    def _sweep(self) -> None:
        """Drop what writers that were killed left behind; once a session, by the time in the comments."""
        if self._swept:
            return
        self._swept = True
        with contextlib.suppress(BackfillError):
            for name, comment in self._stages():
                with contextlib.suppress(TypeError, ValueError, KeyError):
                    made = datetime.fromisoformat(json.loads(comment)["at"])
                    if datetime.now(timezone.utc) - made > _ORPHANS_AFTER:
                        self.drop_stage(told_name(SPELLING, name))

    def _stages(self) -> list[tuple[Any, ...]]:
        schema = quoted(SPELLING, self._options.stage_schema)[1:-1].replace('""', '"')
        return self.fetch(
            "SELECT table_name, comment FROM information_schema.tables"
            f" WHERE table_schema = {text(SPELLING, schema)} AND startswith(table_name, '{_STAGE.upper()}')"
        )

    def _stage(self, name: str) -> str:
        return f"{quoted(SPELLING, self._options.stage_schema)}.{quoted(SPELLING, name)}"

    def drop_stage(self, name: str) -> None:
        if self._connection is not None:
            self.execute(f"DROP TABLE IF EXISTS {self._stage(name)}")

    def _commit(self) -> None:
        try:
            with self._guarded():
                self._run("COMMIT")
        except Unreachable as error:
            raise unknown_outcome(error) from error

    def prepare(self, claim: Claim) -> None:
        self._claim = claim
        table = self._resolved(claim)
        if table not in self._claims:
            self._tell_twins(claim, table)
            claims = claims_table(SPELLING, self._options.stage_schema, table)
            if self.columns_of(claims) is None:
                statement = making(SPELLING, claims, table)
                try:
                    self._within_schema(lambda: self.define(statement))
                except MissingRight as error:
                    raise MissingRight(
                        f"{claim.label} has no claims table, and it cannot be made",
                        error.why,
                        f"Let somebody with the right run once: {statement}",
                    ) from error
            self._claims[table] = claims

    def _tell_twins(self, claim: Claim, table: str) -> None:
        """Look for tables whose names differ from the declared one in case only; where that one is not there, refuse."""
        database, schema, name = (part[1:-1].replace('""', '"') for part in _PART.findall(table))
        home = "" if database == self._home[0] else f"{_exactly(database)}."
        found = [
            (str(there), str(named))
            for there, named in self.fetch(
                f"SELECT table_schema, table_name FROM {home}information_schema.tables"
                f" WHERE upper(table_schema) = {text(SPELLING, schema.upper())}"
                f" AND upper(table_name) = {text(SPELLING, name.upper())}"
            )
        ]
        others = [pair for pair in found if pair != (schema, name)]
        if not others:
            return
        other = ".".join(map(_exactly, others[0]))
        means = ".".join(map(_exactly, (schema, name)))
        if (schema, name) in found:
            self._report(f"{claim.label} is written to {means}, and there is a table {other} too.")
            return
        raise DeclarationError(
            f"{claim.label} was left as it was",
            f"there is a table {other}, and the declared name means {means}, which a load would make beside it",
            f"Rename it: ALTER TABLE {other} RENAME TO {means}",
        )

    def claim(self, claim: Claim) -> None:
        if self._read_only:
            raise opened_to_read(f"{claim.label} cannot be written")
        if claim != self._claim:
            # its table may have to be made, which would commit; nothing was done in the transaction yet
            self.execute("ROLLBACK")
            self.prepare(claim)
            self.execute("BEGIN TRANSACTION")
        wait, began, reported = self._options.wait_seconds, time.monotonic(), False
        while not self._claimed(claim, _TELL_AFTER_SECONDS if not reported else wait):
            waited = time.monotonic() - began
            if waited >= wait:
                self._doomed = SliceBusy(
                    f"{claim.label} is being rewritten by {self._held_by(claim)}, so nothing was changed",
                    f"it still was after {wait:g} s",
                    "Let that run finish, then launch this partition again",
                )
                raise self._doomed
            if not reported and waited >= _TELL_AFTER_SECONDS:
                reported = True
                self._report(
                    f"{claim.label} is being rewritten by {self._held_by(claim)}: waiting, up to {wait - waited:.0f} s"
                    " more."
                )
            time.sleep(_ASK_AGAIN_SECONDS)
            self.execute("BEGIN TRANSACTION")

    def _claimed(self, claim: Claim, patience: float) -> bool:
        """Take the claim within `patience` seconds; where it is not ours in time, roll back and say so."""
        import snowflake.connector as connector

        table = self._resolved(claim)
        self._patience = min(patience, self._options.wait_seconds)
        try:
            with self._guarded():
                try:
                    rows = self._run(claiming(SPELLING, self._claims[table], claim)).rowcount
                except connector.errors.Error as error:
                    if not is_lock(error):
                        raise
                    self._run("ROLLBACK")
                    return False
        finally:
            self._patience = None
        if rows != len(buckets_of(claim)):
            self._doomed = WriteFailed(
                f"{claim.label} was left as it was",
                f"the claims table {self._claims[table]} has not the rows that it was made with",
                f"Let somebody drop it while nobody writes {table}: it is made again",
            )
            raise self._doomed
        return True

    def _held_by(self, claim: Claim) -> str:
        with contextlib.suppress(BackfillError):
            comments = [comment for _, comment in self._stages()]
            return holders(comments, claim, self._resolved(claim), self._called(claim))
        return "another writer"

    def _called(self, claim: Claim) -> str:
        return f"run {claim.holder}"

    def _resolved(self, claim: Claim) -> str:
        return resolved(claim.relation, '"', *self._home)

    def cost(self, seconds: float) -> float | None:
        return estimated(self._options.warehouse_size, seconds)

    def attributed(self, backfill: str) -> float | None:
        """Return the credits that the account attributes to a backfill, hours later."""
        return attributed(self, backfill)

    def clock(self) -> datetime:
        return self.fetch("SELECT SYSDATE()")[0][0].replace(tzinfo=timezone.utc)

    @property
    def _open_connection(self) -> Any:
        if self._connection is None:
            raise Unreachable(
                "the account is closed", "its session has ended", "Open a new session"
            )
        return self._connection

    def _run(self, sql: str) -> Any:
        parameters: dict[str, Any] = {"QUERY_TAG": self._tag()}
        if self._patience is not None:
            parameters["LOCK_TIMEOUT"] = max(1, round(self._patience))
            # the limit is for work, and would cut the wait for another writer short
            if self._options.statement_limit:
                limit = max(self._options.statement_limit, self._patience + _CLAIM_SECONDS)
                parameters["STATEMENT_TIMEOUT_IN_SECONDS"] = round(limit)
        cursor = self._open_connection.cursor()
        cursor.execute(sql, _statement_params=parameters)
        return cursor

    def _tag(self) -> str:
        """Return what the account's history keeps of each statement: JSON, by which cost can be summed."""
        told: dict[str, Any] = {"app": "backfill_assets", "who": self._who}
        if self._claim is not None:
            _, _, partition = self._claim.label.partition(" ")
            told |= {
                "table": self._resolved(self._claim).replace('"', ""),
                "partition": partition,
                "run": self._claim.holder,
                "backfill": self._claim.backfill,
            }
        tag = json.dumps({key: value for key, value in told.items() if value})
        return tag if len(tag) <= _LONGEST_TAG else json.dumps({"run": told.get("run")})

    @contextlib.contextmanager
    def _guarded(self) -> Generator[None, None, None]:
        """Say the connector's errors as ours, and remember the first: a transaction is not to go on after one."""
        import snowflake.connector as connector

        try:
            yield
        except connector.errors.Error as error:
            ours = told(error)
            self._doomed = self._doomed or ours
            raise ours from shown_cause(error)


class _Described:
    """A column as the connector describes it, under the name that we give it."""

    def __init__(self, name: str, column: Any) -> None:
        self.name, self.type_code = name, column.type_code
        self.precision, self.scale, self.internal_size = (
            column.precision,
            column.scale,
            column.internal_size,
        )


def _exactly(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _as_text(value: object) -> str | None:
    if value is None:
        return None
    return value.hex() if isinstance(value, bytes) else str(value)
