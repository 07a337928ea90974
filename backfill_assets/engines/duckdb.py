"""DuckDB: a file that one process opens at a time, always in turn (`filequeue.py`).

No other writer of ours can be inside the file while a session is, so the turn is the claim. Rows of a
frame are read where they are, and queries are staged in the session's own temporary tables, which die with it.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import parse_qsl, unquote, urlsplit

from backfill_assets.engines.drivers import driver
from backfill_assets.engines.duckdb_errors import is_ambiguous, told
from backfill_assets.engines.duckdb_file import OpenFile
from backfill_assets.engines.filequeue import FileQueue
from backfill_assets.engines.limited import Limited
from backfill_assets.engines.protocol import Claim, Report, Spelling, silence
from backfill_assets.engines.reading import opened_to_read
from backfill_assets.engines.sql import quoted
from backfill_assets.engines.transactions import Transactions, opened
from backfill_assets.errors import (
    BackfillError,
    DeclarationError,
    MissingTable,
    Unreachable,
    WarehouseBusy,
    shown_cause,
    without_secrets,
)

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa

T = TypeVar("T")

SPELLING = Spelling(
    dialect="duckdb",
    literals={
        "date": "DATE '{}'",
        "timestamp": "TIMESTAMP '{}'",
        "timestamptz": "TIMESTAMPTZ '{}'",
        "int_yyyymmdd": "{}",
        "iso_text": "'{}'",
    },
    row_hash="hash({columns})",
    column_hash={"": "{column}"},
    hash_joint=", ",
    hash_sum="CAST(coalesce(sum({hash}), 0) AS VARCHAR)",
    try_cast="TRY_CAST({value} AS {type})",
    case_sensitive=False,
    longest_name=10_000,
    default_schema="main",
    # with every row the last block of each column is written again: 24 of them would cost as much as the slice
    # itself, and so would choosing their compression each time
    log_column="{type} USING COMPRESSION uncompressed",
    log_field="({column} ->> '{name}')",
    slow="SELECT sum(hash(i)) FROM range(1000000000000) AS numbers (i)",
    ddl_rolls_back=True,
    exact_text='{column} COLLATE "C"',
    wide={"integer": "HUGEINT", "decimal": "DECIMAL(38, {scale})", "float": "DOUBLE"},
    canonical={
        "integer": "CAST({column} AS VARCHAR)",
        "decimal": "rtrim(rtrim(CAST({column} AS VARCHAR), '0'), '.')",
        "float": "CASE WHEN isinf({column}) THEN CASE WHEN {column} > 0 THEN 'Infinity' ELSE '-Infinity' END"
        " WHEN isnan({column}) THEN 'NaN' ELSE CAST({column} AS VARCHAR) END",
        "text": "{column}",
        "date": "CAST({column} AS VARCHAR)",
        "timestamp": "CAST({column} AS VARCHAR)",
        "timestamptz": "CAST({column} AT TIME ZONE 'UTC' AS VARCHAR)",
        "time": "CAST({column} AS VARCHAR)",
        "boolean": "CAST({column} AS VARCHAR)",
        "uuid": "CAST({column} AS VARCHAR)",
        "binary": "lower(hex({column}))",
    },
    text_number="CAST('0x' || substr(md5({text}), 1, 15) AS BIGINT)",
    view_rolls_back=True,
    # of a view that reads what is no more there the information schema tells nothing
    view=(
        "SELECT 'view', sql, '' FROM duckdb_views() WHERE lower(database_name) = lower({database_text})"
        " AND lower(schema_name) = lower({schema_text}) AND lower(view_name) = lower({name_text}) UNION ALL"
        " SELECT 'table', NULL, '' FROM duckdb_tables() WHERE lower(database_name) = lower({database_text})"
        " AND lower(schema_name) = lower({schema_text}) AND lower(table_name) = lower({name_text})"
    ),
    views=(
        "SELECT schema_name, view_name, sql FROM duckdb_views() WHERE NOT internal"
        " AND contains(lower(sql), lower({name_text}))"
    ),
    tried="coalesce(TRY({value}), {otherwise})",
    # its hash lays both halves of 128 bits over each other: 0 is -1
    hash_of_long="CAST({column} AS VARCHAR)",
    mixed="hash({hash})",
)
_SETTINGS = ("threads", "memory_limit", "temp_directory")
_CHECKPOINTS = ("1KB", "16MB")
_CONNECT_POLL_SECONDS = 0.2
_TELL_SECONDS = 5.0
# from here on several threads are worth waking: DuckDB shares out row groups of 122,880 rows
_WIDE_ROWS = 500_000
_WIDE_BYTES = 2**30
# whoever only reads has come to read much of it
_WIDE_BYTES_TO_READ = 2**24


class DuckDBEngine(Limited):
    """`duckdb:///relative.duckdb` or `duckdb:////absolute.duckdb`, with `?threads=2&memory_limit=2GB&lock_wait=600`.

    `lock_wait` is in seconds: how long to wait for others who have the file open; `statement_timeout`, in seconds too,
    stops a statement that takes longer (0, the default, none).
    """

    def __init__(self, url: str) -> None:
        self.shown = without_secrets(url)
        self.spelling = SPELLING
        parts = urlsplit(url)
        path = unquote(parts.path[1:])
        if parts.netloc or path in ("", ":memory:"):
            raise DeclarationError(
                f"the warehouse URL {self.shown!r} cannot be used",
                "it names no file, and a database in memory would be empty at each run",
                "Write duckdb:///relative.duckdb or duckdb:////absolute.duckdb",
            )
        self.file = Path(path)
        options = dict(parse_qsl(parts.query))
        wait = options.pop("lock_wait", "600")
        limit = options.pop("statement_timeout", "0")
        unknown = sorted(set(options) - set(_SETTINGS))
        if unknown or not (_is_number(wait) and _is_number(limit)):
            raise DeclarationError(
                f"the warehouse URL {self.shown!r} cannot be used",
                f"the option {unknown[0]!r} is not known"
                if unknown
                else f"lock_wait={wait!r} or statement_timeout={limit!r} is no number of seconds",
                f"Use only {', '.join((*_SETTINGS, 'lock_wait', 'statement_timeout'))}",
            )
        self.settings: dict[str, str] = options
        self.wait_seconds = float(wait)
        self.statement_limit = float(limit)

    @property
    def place(self) -> str:
        """The file, wherever links lead."""
        return str(self.file.resolve())

    @property
    def address(self) -> str:
        """The file again."""
        return self.place

    def session(
        self, *, who: str = "", read_only: bool = False, report: Report | None = None
    ) -> AbstractContextManager[DuckDBSession]:
        """Wait for our turn at the file, open it, and close it before the turn ends."""
        return opened(DuckDBSession(self, who, read_only, report or silence))


class DuckDBSession(Transactions):
    """One connection to the file, held together with the turn at it."""

    def __init__(self, engine: DuckDBEngine, who: str, read_only: bool, report: Report) -> None:
        self.spelling = SPELLING
        self._engine = engine
        self._who, self._read_only, self._report = who, read_only, report
        self._queue = FileQueue(engine.file, engine.wait_seconds)
        self._turn = contextlib.ExitStack()
        self._file: OpenFile | None = None
        self._transactions = 0
        self._frames: set[str] = set()
        self._asked_at = 0.0

    def open(self) -> None:
        """Take a turn, then connect: DuckDB itself must never find two of us at the file."""
        self._asked_at = time.monotonic()
        self._turn.enter_context(self._queue.turn(self._who, self._report))
        is_new = not self._read_only and not self._engine.file.exists()
        self._file = self._connect()
        if is_new:
            self._report(
                f"{self._engine.file} was not there and is a new warehouse now. If you meant one that is there, correct"
                " the path in the warehouse URL."
            )
        wide = _WIDE_BYTES_TO_READ if self._read_only else _WIDE_BYTES
        if self._engine.file.stat().st_size >= wide:
            self._widen()

    def close(self) -> None:
        """Close the connection (an open transaction is rolled back), then end the turn."""
        try:
            if self._file is not None:
                self._guarded(self._file.close)
        finally:
            self._file = None
            self._turn.close()

    def breathe(self) -> None:
        """Give the file to whoever waits, and get in line again."""
        if self._queue.others_wait():
            self.close()
            self.open()

    @property
    def database(self) -> str:
        return self._opened.name

    def execute(self, sql: str) -> int:
        def run() -> int:
            result = self._open_connection.execute(sql)
            counted = result.description and result.description[0][0] == "Count"
            row = result.fetchone() if counted else None
            return int(row[0]) if row else -1

        return self._guarded(run)

    def define(self, *statements: str) -> None:
        try:
            self.execute("; ".join(("BEGIN TRANSACTION", *statements, "COMMIT")))
        except BackfillError:
            with contextlib.suppress(BackfillError):
                self.execute("ROLLBACK")
            raise

    def fetch(self, sql: str) -> list[tuple[Any, ...]]:
        return self._guarded(lambda: self._open_connection.execute(sql).fetchall())

    def fetch_arrow(self, sql: str) -> pa.Table:
        return self._guarded(lambda: self._open_connection.execute(sql).to_arrow_table())

    def columns_of(self, relation: str) -> dict[str, str] | None:
        try:
            shape = self._guarded(
                lambda: (
                    self._open_connection.execute(f"SELECT * FROM {relation} LIMIT 0").description
                    or []
                )
            )
        except MissingTable:
            return None
        return {column[0]: str(column[1]) for column in shape}

    def stage_arrow(self, name: str, data: pa.Table) -> str:
        if data.num_rows >= _WIDE_ROWS:
            self._widen()
        self._guarded(lambda: self._open_connection.register(name, data))
        self._frames.add(name)
        return quoted(SPELLING, name)

    def stage_select(self, name: str, sql: str) -> str:
        self._widen()  # it may read anything, files elsewhere too
        relation = quoted(SPELLING, name)
        self.execute(f"CREATE TEMPORARY TABLE {relation} AS {sql}")
        return f"temp.{relation}"

    def drop_stage(self, name: str) -> None:
        if self._file is None:
            return
        if name in self._frames:
            self._frames.remove(name)
            self._guarded(lambda: self._open_connection.unregister(name))
        else:
            self.execute(f"DROP TABLE IF EXISTS temp.{quoted(SPELLING, name)}")

    def _widen(self) -> None:
        if self._file is not None:
            self._guarded(self._file.widen)

    def _begin(self) -> None:
        self._choose_checkpoint()
        self.execute("BEGIN TRANSACTION")

    def _choose_checkpoint(self) -> None:
        """Let the first transaction go straight into the file, and later ones through the log.

        A lone slice would otherwise be written twice, into the log at COMMIT and into the file at closing;
        many slices are cheaper logged one by one and brought into the file together.
        """
        if self._transactions < 2 and self._file is not None and self._file.is_ours:
            self.execute(f"SET checkpoint_threshold = '{_CHECKPOINTS[self._transactions]}'")
        self._transactions += 1

    def claim(self, claim: Claim) -> None:
        """Nothing is left to claim: the turn at the file, held since `open`, keeps every other writer out."""
        if self._read_only:
            raise opened_to_read(f"{claim.label} cannot be written")

    def clock(self) -> datetime:
        return datetime.now(timezone.utc)

    @property
    def _opened(self) -> OpenFile:
        if self._file is None:
            raise Unreachable(
                f"{self._engine.file.name} is closed", "its session has ended", "Open a new session"
            )
        return self._file

    @property
    def _open_connection(self) -> duckdb.DuckDBPyConnection:
        return self._opened.connection

    def _connect(self) -> OpenFile:
        """Connect; a program that takes no turns is waited for too, and the wait for the turn counts with it."""
        duckdb = driver("duckdb", "DuckDB", "duckdb")
        until = self._asked_at + self._engine.wait_seconds
        began = told_at = time.monotonic()
        while True:
            try:
                return OpenFile(self._engine.file, self._engine.settings, read_only=self._read_only)
            except duckdb.Error as error:
                ours, now = self._told(error), time.monotonic()
                if not isinstance(ours, WarehouseBusy) or now > until:
                    raise ours from shown_cause(error)
                if now - told_at > _TELL_SECONDS:
                    told_at = now
                    self._report(
                        f"Waiting for {self._engine.file.name} since {now - began:.0f} s: {ours.why}."
                    )
            time.sleep(_CONNECT_POLL_SECONDS)

    def _guarded(self, run: Callable[[], T]) -> T:
        import duckdb

        try:
            with self._limited():
                return run()
        except duckdb.Error as error:
            if is_ambiguous(error) and self._file is not None and self._file.rename():
                return self._guarded(run)
            ours = self._told(error)
            self._doomed = self._doomed or ours
            raise ours from shown_cause(error)

    def _told(self, error: Exception) -> BackfillError:
        return told(error, self._engine.file, self._engine.statement_limit)

    @contextlib.contextmanager
    def _limited(self) -> Generator[None, None, None]:
        """Interrupt what the body runs when it takes longer than `statement_timeout`; DuckDB itself has no limit."""
        if not self._engine.statement_limit or self._file is None:
            yield
            return
        timer = threading.Timer(self._engine.statement_limit, self._file.connection.interrupt)
        timer.start()
        try:
            yield
        finally:
            timer.cancel()


def _is_number(text: str) -> bool:
    try:
        return 0 <= float(text) < float("inf")
    except ValueError:
        return False
