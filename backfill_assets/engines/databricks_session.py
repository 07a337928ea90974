"""One session with a SQL warehouse, by Databricks' own connector: every statement is committed by itself.

Rows come in statements, into a Delta table of their own, which is dropped afterwards; what a killed writer left there
is dropped by a later one after a day.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import re
import socket
import time
import urllib.request
import uuid
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any, TypeVar

from backfill_assets.engines import databricks_claims as claims
from backfill_assets.engines.claim_rows import BUCKETS, buckets_of, claims_table, resolved
from backfill_assets.engines.databricks_cost import estimated
from backfill_assets.engines.databricks_errors import already_there, families, told, unreachable
from backfill_assets.engines.databricks_lease import Renewal, kept
from backfill_assets.engines.databricks_types import selects, writable
from backfill_assets.engines.drivers import driver
from backfill_assets.engines.protocol import Claim, Report
from backfill_assets.engines.reading import opened_to_read, refuse_write
from backfill_assets.engines.sql import quoted
from backfill_assets.errors import (
    BackfillError,
    MissingRight,
    MissingTable,
    SliceBusy,
    Unreachable,
    WriteFailed,
    shown_cause,
)

if TYPE_CHECKING:
    import pyarrow as pa

    from backfill_assets.engines.databricks import DatabricksEngine

T = TypeVar("T")

_INSTALL = "backfill-assets[databricks]"
_STAGE = "backfill_stage_"
_STAGE_AGE = re.compile(r"_(\d{9,})$")
_ORPHANS_AFTER_SECONDS = 86_400
_TELL_AFTER_SECONDS = 5.0
_FIRST_PAUSE, _LONGEST_PAUSE = 0.05, 5.0
_REACH_SECONDS = 10.0
_REQUEST_SECONDS = 120
_ATTEMPTS = 60
# one statement may have 16 MiB of text; some of the characters have several bytes
_ROWS_AT_ONCE, _LETTERS_AT_ONCE = 10_000, 2_000_000
_COUNTED = ("INSERT", "DELETE", "UPDATE", "MERGE")
# what an account's defaults would otherwise change: casts that fail, days in UTC, reads of what is there now
_SETTINGS = {"ANSI_MODE": "true", "TIMEZONE": "UTC", "USE_CACHED_RESULT": "false"}


class DatabricksSession:
    """Each statement is its own transaction, and there is no other; `hold` keeps other writers of a slice out."""

    def __init__(self, engine: DatabricksEngine, who: str, read_only: bool, report: Report) -> None:
        self.spelling = engine.spelling
        self._engine, self._options = engine, engine.options
        self._who, self._read_only, self._report = who, read_only, report
        self._connection: Any = None
        self._token = uuid.uuid4().hex
        self._claim: Claim | None = None
        self._claims: dict[str, str] = {}
        self._stages: dict[str, str] = {}
        self._held_since = 0.0
        self._holds: Claim | None = None
        self._swept = False

    def open(self) -> None:
        """Connect; a warehouse that is stopped is started by that, and waited for."""
        sql = driver("databricks.sql", "Databricks", _INSTALL)
        options = self._options
        settings = dict(_SETTINGS)
        if options.statement_limit:
            settings["STATEMENT_TIMEOUT"] = str(max(1, round(options.statement_limit)))
        try:
            _reach(options.host, options.port)
            self._connection = sql.connect(
                server_hostname=options.host,
                _port=options.port,
                http_path=options.http_path,
                catalog=options.catalog,
                schema=options.schema,
                session_configuration=settings,
                user_agent_entry="backfill_assets",
                enable_telemetry=False,
                _socket_timeout=_REQUEST_SECONDS,
                _retry_stop_after_attempts_count=_ATTEMPTS,
                _retry_stop_after_attempts_duration=max(1.0, options.connect_seconds),
                **self._credentials(),
            )
        except BackfillError:
            raise
        except Exception as error:
            # the connector lets everybody's errors through, and their text may show a piece of a secret
            raise unreachable(error, self._engine.shown) from None

    def _credentials(self) -> dict[str, Any]:
        """Return the connector's arguments: a token, or what the SDK finds for a principal, a profile or the environment."""
        options = self._options
        if options.token:
            return {"access_token": options.token}
        token = os.environ.get("DATABRICKS_TOKEN")
        if token and not (options.client_id or options.profile):
            return {"access_token": token}
        core = driver("databricks.sdk.core", "Databricks", _INSTALL)
        found: dict[str, str] = {"host": f"https://{options.host}"}
        if options.client_id:
            found |= {
                "client_id": options.client_id,
                "client_secret": options.client_secret,
                "auth_type": "oauth-m2m",
            }
        if options.profile:
            found["profile"] = options.profile
        config = core.Config(**found)
        return {"credentials_provider": lambda: config.authenticate}

    def close(self) -> None:
        """Disconnect, after what could not be dropped before."""
        with contextlib.suppress(BackfillError):
            for name in list(self._stages):
                self.drop_stage(name)
        connection, self._connection = self._connection, None
        if connection is not None:
            with contextlib.suppress(Exception):
                connection.close()

    def breathe(self) -> None:
        """Do nothing: an idle session keeps nobody out."""

    @property
    def database(self) -> str:
        return self._options.catalog

    @property
    def lease_seconds(self) -> float:
        return self._options.lease_seconds

    def execute(self, sql: str) -> int:
        self._refuse_write(sql)
        # a statement that lost against another writer has done nothing, so it can be said again
        return self._patiently(lambda: self._counted(sql))

    def _counted(self, sql: str) -> int:
        with self._cursor(sql) as cursor:
            if sql.split(None, 1)[0].upper() not in _COUNTED:
                return -1
            names = [column[0] for column in cursor.description or ()]
            row = cursor.fetchone()
            counts = dict(zip(names, row, strict=True)) if row is not None else {}
            # of a replacement, what it removed is none of what it inserted
            wanted = "num_inserted_rows" if "num_inserted_rows" in counts else "num_affected_rows"
            return int(counts.get(wanted, -1))

    def define(self, *statements: str) -> None:
        for statement in statements:
            try:
                self.execute(statement)
            except BackfillError as error:
                if not already_there(error):
                    raise

    def _refuse_write(self, sql: str) -> None:
        if self._read_only:
            refuse_write(self.spelling.dialect, sql)

    def fetch(self, sql: str) -> list[tuple[Any, ...]]:
        self._refuse_write(sql)
        with self._cursor(sql) as cursor:
            return [tuple(row) for row in cursor.fetchall()]

    def fetch_arrow(self, sql: str) -> pa.Table:
        import pyarrow as pa

        self._refuse_write(sql)
        with self._cursor(sql) as cursor:
            table: Any = cursor.fetchall_arrow()
        fields = [
            field.with_type(pa.timestamp("us", tz="UTC"))
            if pa.types.is_timestamp(field.type) and field.type.tz
            else field
            for field in table.schema
        ]
        return table.cast(pa.schema(fields))

    def columns_of(self, relation: str) -> dict[str, str] | None:
        try:
            found = self.fetch(f"DESCRIBE QUERY SELECT * FROM {relation}")
        except MissingTable:
            return None
        return {str(row[0]): str(row[1]) for row in found}

    def stage_arrow(self, name: str, data: pa.Table) -> str:
        rows = writable(data)
        relation, made, whole = self._stage(name), False, True
        for query in selects(self.spelling, rows, _ROWS_AT_ONCE, _LETTERS_AT_ONCE):
            if made:
                self.execute(f"INSERT INTO {relation} {query}")
            else:
                self._make_stage(relation, query)
            made, whole = True, not made
        if not whole:
            # the connector may have sent an INSERT twice, where the network failed before the answer
            (found,) = self.fetch(f"SELECT count(*) FROM {relation}")
            if found[0] != rows.num_rows:
                raise WriteFailed(
                    "the rows were not written",
                    f"{rows.num_rows} were sent and {found[0]} arrived in the stage",
                    "Launch this partition again",
                )
        return relation

    def stage_select(self, name: str, sql: str) -> str:
        relation = self._stage(name)
        self._make_stage(relation, sql)
        return relation

    def _make_stage(self, relation: str, query: str) -> None:
        self._sweep()
        schema = quoted(self.spelling, self._options.stage_schema)
        statement = f"CREATE TABLE {relation} AS {query}"
        try:
            self.execute(statement)
        except MissingTable as error:
            if "SCHEMA_NOT_FOUND" not in error.why:
                raise
            self.define(f"CREATE SCHEMA IF NOT EXISTS {schema}")
            self.execute(statement)

    def _stage(self, name: str) -> str:
        """Return the stage's SQL name; the second at its end tells when it was made, to whoever finds it."""
        schema = quoted(self.spelling, self._options.stage_schema)
        relation = f"{schema}.{quoted(self.spelling, f'{name}_{int(time.time())}')}"
        self._stages[name] = relation
        return relation

    def _sweep(self) -> None:
        """Drop what writers that were killed left behind; once a session."""
        if self._swept:
            return
        self._swept = True
        schema = quoted(self.spelling, self._options.stage_schema)
        with contextlib.suppress(BackfillError):
            for row in self.fetch(f"SHOW TABLES IN {schema} LIKE '{_STAGE}*'"):
                made = _STAGE_AGE.search(str(row[1]))
                if made and time.time() - int(made.group(1)) > _ORPHANS_AFTER_SECONDS:
                    self.execute(
                        f"DROP TABLE IF EXISTS {schema}.{quoted(self.spelling, str(row[1]))}"
                    )

    def drop_stage(self, name: str) -> None:
        relation = self._stages.get(name)
        if relation is not None and self._connection is not None:
            self.execute(f"DROP TABLE IF EXISTS {relation}")
            self._stages.pop(name)

    def transaction(self) -> AbstractContextManager[None]:
        raise WriteFailed(
            "nothing was changed",
            "a SQL warehouse commits each statement by itself, so several cannot be all or nothing",
            "Replace a slice by one statement, as rewrite() does",
        )

    def claim(self, claim: Claim) -> None:
        self.transaction()

    def prepare(self, claim: Claim) -> None:
        self._claim = claim
        table = self._resolved(claim)
        if table in self._claims:
            return
        place = claims_table(self.spelling, self._options.stage_schema, table)
        if self.columns_of(place) is None:
            statement = claims.making(self.spelling, place, table)
            schema = quoted(self.spelling, self._options.stage_schema)
            try:
                with contextlib.suppress(MissingRight):
                    self.define(f"CREATE SCHEMA IF NOT EXISTS {schema}")
                self.define(statement)
            except (MissingRight, MissingTable) as error:
                raise MissingRight(
                    f"{claim.label} has no claims table, and it cannot be made",
                    error.why,
                    f"Let somebody with the right run once: {statement}",
                ) from error
        self._claims[table] = place

    @contextlib.contextmanager
    def hold(self, claim: Claim, *, wait: bool = True) -> Generator[None, None, None]:
        if self._read_only:
            raise opened_to_read(f"{claim.label} cannot be written")
        self.prepare(claim)
        self._take(claim, self._options.wait_seconds if wait else 0.0)
        self._holds = claim
        try:
            with kept(self._options.lease_seconds, lambda: self._renewing(claim)):
                yield
        finally:
            self._holds = None
            self._give_back(claim)

    @contextlib.contextmanager
    def _renewing(self, claim: Claim) -> Generator[Renewal, None, None]:
        """Open a session beside this one, which waits for its statement, and yield what renews the claim."""
        lease, wanted = self._options.lease_seconds, len(buckets_of(claim))
        statement = claims.renewing(
            self.spelling, self._claims[self._resolved(claim)], self._token, lease
        )

        with self._engine.session(who=f"{self._who} (lease)") as beside:

            def renewed() -> bool:
                since = time.monotonic()
                is_ours = beside.execute(statement) == wanted
                if is_ours:
                    self._held_since = since
                return is_ours

            yield renewed

    def _take(self, claim: Claim, patience: float) -> None:
        began, pause, reported = time.monotonic(), _FIRST_PAUSE, False
        while not self._taken(claim):
            waited = time.monotonic() - began
            if waited >= patience:
                raise SliceBusy(
                    f"{claim.label} is being rewritten by {self._held_by(claim)}, so nothing was changed",
                    f"it still was after {patience:g} s",
                    "Let that run finish, then launch this partition again; what a run that was killed holds is free"
                    " when its time is over",
                )
            if not reported and waited >= _TELL_AFTER_SECONDS:
                reported = True
                self._report(
                    f"{claim.label} is being rewritten by {self._held_by(claim)}: waiting, up to"
                    f" {patience - waited:.0f} s more."
                )
            # apart from each other, or two that wait would meet again and again
            _pause(min(patience - waited, pause * random.uniform(0.5, 1.0)))
            pause = min(pause * 2, _LONGEST_PAUSE)

    def _taken(self, claim: Claim) -> bool:
        """Take the claim; where some of it is held by others, give the rest back and say so."""
        place, wanted = self._claims[self._resolved(claim)], len(buckets_of(claim))
        since = time.monotonic()
        try:
            got = self._counted(
                claims.taking(self.spelling, place, claim, self._token, self._options.lease_seconds)
            )
        except SliceBusy:  # somebody else's UPDATE came first
            return False
        if got == wanted:
            self._held_since = since
            return True
        if got:
            self._give_back(claim)
        elif not self.fetch(claims.holding(self.spelling, place, claim, self._token)):
            held = self.fetch(f"SELECT count(*) FROM {place}")[0][0]
            if held != BUCKETS:
                raise WriteFailed(
                    f"{claim.label} was left as it was",
                    f"the claims table {place} has not the rows that it was made with",
                    "Let somebody drop it while nobody writes that table: it is made again",
                )
        return False

    def _give_back(self, claim: Claim) -> None:
        """Free the claim, if need be on a new connection; what cannot be freed is when its lease is over."""
        statement = claims.giving_back(
            self.spelling, self._claims[self._resolved(claim)], self._token
        )
        try:
            self._patiently(lambda: self._counted(statement))
        except Unreachable:
            with contextlib.suppress(BackfillError):
                self.close()
                self.open()
                self._counted(statement)
        except BackfillError:
            pass

    def still_holds(self, claim: Claim) -> None:
        held = time.monotonic() - self._held_since
        if held > self._options.lease_seconds / 2:
            raise SliceBusy(
                f"{claim.label} was left as it was",
                f"{held:.0f} s have passed of the {self._options.lease_seconds:g} s that it is claimed for, which could"
                " not be renewed, and another writer might begin before it ends",
                "Launch this partition again, with a larger claim_lease in the warehouse URL if it happens again",
            )

    def version_of(self, relation: str) -> str:
        return str(self.fetch(f"DESCRIBE HISTORY {relation} LIMIT 1")[0][0])

    def _held_by(self, claim: Claim) -> str:
        place = self._claims[self._resolved(claim)]
        with contextlib.suppress(BackfillError):
            found = self.fetch(claims.holding(self.spelling, place, claim, self._token))
            named = [
                f"run {holder} ({slice_}, until {until:%H:%M:%S} UTC at the latest)"
                for holder, slice_, until in found
            ]
            return " and ".join(named) or "another writer"
        return "another writer"

    def _resolved(self, claim: Claim) -> str:
        return resolved(claim.relation, "`", self._options.catalog, self._options.schema).lower()

    def cost(self, seconds: float) -> float | None:
        return estimated(self._options.warehouse_size, seconds)

    def clock(self) -> datetime:
        now: datetime = self.fetch("SELECT current_timestamp()")[0][0]
        return now.astimezone(timezone.utc) if now.tzinfo else now.replace(tzinfo=timezone.utc)

    def _patiently(self, act: Callable[[], T]) -> T:
        """Do it again for as long as another writer is in the way, within `lock_wait` and well within a claim's lease."""
        patience = min(self._options.wait_seconds, self._options.lease_seconds / 4)
        until, pause = time.monotonic() + patience, _FIRST_PAUSE
        while True:
            try:
                return act()
            except SliceBusy:
                if time.monotonic() >= until:
                    raise
            _pause(pause * random.uniform(0.5, 1.0))
            pause = min(pause * 2, _LONGEST_PAUSE)
            if self._holds is not None:
                # it may have lost against the next holder of the claim, whose rows are newer than ours
                self.still_holds(self._holds)

    @contextlib.contextmanager
    def _cursor(self, sql: str) -> Generator[Any, None, None]:
        """Run a statement and yield its cursor; the connector's errors leave as ours."""
        if self._connection is None:
            raise Unreachable("Databricks is closed", "its session has ended", "Open a new session")
        try:
            cursor = self._connection.cursor()
            try:
                cursor.execute(f"{sql} /* {self._tag()} */")
                yield cursor
            except (KeyboardInterrupt, SystemExit):
                # it would go on without us
                with contextlib.suppress(Exception):
                    cursor.cancel()
                raise
            finally:
                with contextlib.suppress(Exception):
                    cursor.close()
        except families() as error:
            raise told(error) from shown_cause(error)

    def _tag(self) -> str:
        """Return what the history of queries keeps beside each statement: JSON, by which usage can be found."""
        told_: dict[str, Any] = {"app": "backfill_assets", "who": self._who}
        if self._claim is not None:
            told_ |= {
                "table": self._resolved(self._claim).replace("`", ""),
                "partition": self._claim.label.partition(" ")[2],
                "run": self._claim.holder,
                "backfill": self._claim.backfill,
            }
        tag = json.dumps({key: value for key, value in told_.items() if value})
        return tag.replace("/", " ").replace("*", " ")


def _reach(host: str, port: int) -> None:
    """Find out soon that nobody listens there: the connector would try for as long as a warehouse takes to start."""
    if urllib.request.getproxies().get("https") and not urllib.request.proxy_bypass(host):
        return
    socket.create_connection((host, port), timeout=_REACH_SECONDS).close()


def _pause(seconds: float) -> None:
    time.sleep(max(0.0, seconds))
