"""A session on BigQuery: statements are jobs, and those of a transaction share a BigQuery session that carries it.

Whatever is read or made outside the transaction is no part of that session; what a claim needs is made before BEGIN.
"""

from __future__ import annotations

import contextlib
import random
import time
from collections.abc import Generator
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING, Any

from backfill_assets.engines import bigquery_claims as claims
from backfill_assets.engines.bigquery_errors import families, is_twin, told
from backfill_assets.engines.bigquery_jobs import (
    REQUEST_SECONDS,
    Jobs,
    label,
    patiently,
    speaking,
)
from backfill_assets.engines.bigquery_types import loadable, schema_of, spelled
from backfill_assets.engines.drivers import driver
from backfill_assets.engines.protocol import Claim, Report
from backfill_assets.engines.reading import opened_to_read, refuse_write
from backfill_assets.engines.sql import quoted
from backfill_assets.engines.transactions import Transactions
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

    from backfill_assets.engines.bigquery import BigQueryEngine

_STAGE_HOURS = 24
# BigQuery bills at least 10 MB for a table that is read; the claim, the read back and the audit read two at most
_BOOKKEEPING_BYTES = 20 * 2**20
_TELL_AFTER_SECONDS = 5.0
_FIRST_PAUSE, _LONGEST_PAUSE = 0.25, 5.0


class BigQuerySession(Transactions):
    """One client, and the BigQuery session of its transactions once there was one."""

    def __init__(self, engine: BigQueryEngine, who: str, read_only: bool, report: Report) -> None:
        self.spelling = engine.spelling
        self._engine = engine
        self._who, self._read_only, self._report = who, read_only, report
        self._jobs: Jobs | None = None
        self._session: str | None = None
        self._inside = False
        self._billed_before = 0
        self._claimable: set[tuple[str, str, str]] = set()

    def open(self) -> None:
        """Make the client; BigQuery is first asked by the first statement."""
        bigquery = driver("google.cloud.bigquery", "BigQuery", "backfill-assets[bigquery]")
        with speaking(), self._readable_credentials():
            client = self._engine.client(bigquery)
        dataset = f"{self._engine.project}.{self._engine.dataset}"
        self._jobs = Jobs(client, dataset, self._engine.limits)
        self.label(run=self._who.removeprefix("run "))

    @contextlib.contextmanager
    def _readable_credentials(self) -> Generator[None, None, None]:
        try:
            yield
        except (OSError, ValueError) as error:
            raise Unreachable(
                f"the warehouse {self._engine.shown} cannot be reached",
                "the file that credentials_path names cannot be read as credentials",
                "Correct the path in the warehouse URL",
            ) from shown_cause(error)

    def close(self) -> None:
        """End the BigQuery session, which rolls back what is open, and close the client."""
        jobs = self._jobs
        if jobs is None:
            return
        try:
            self._abandon()
        finally:
            self._jobs = None
            jobs.client.close()

    def _abandon(self) -> None:
        """End the BigQuery session; one that cannot be asked to ends by itself, and rolls back then."""
        session, begun = self._session, self._inside
        self._session, self._inside = None, False
        if session is None or self._jobs is None:
            return
        for statement in [*(["ROLLBACK TRANSACTION"] if begun else []), "CALL BQ.ABORT_SESSION()"]:
            with contextlib.suppress(*families()):
                self._jobs.query(statement, session=session)

    def breathe(self) -> None:
        """Do nothing: nobody waits for a session without a transaction."""

    def label(self, **labels: str | None) -> None:
        """Put these labels on every job from now on; one without a value is taken off."""
        jobs = self._open_jobs
        for name, value in labels.items():
            jobs.labels.pop(label(name), None)
            if value:
                jobs.labels[label(name)] = label(value)

    @property
    def database(self) -> str:
        return self._engine.project

    def execute(self, sql: str) -> int:
        # what `Transactions` says
        turn = {
            "BEGIN TRANSACTION": self._started,
            "COMMIT": self._committed,
            "ROLLBACK": self._rolled_back,
        }.get(sql)
        if turn is not None:
            return turn()
        self._refuse_reader()
        with self._guarded():
            count = self._run(sql).num_dml_affected_rows
        return -1 if count is None else int(count)

    def define(self, *statements: str) -> None:
        self._refuse_reader()
        for statement in statements:
            with self._guarded():
                try:
                    self._open_jobs.query(statement)
                except families() as error:
                    if not is_twin(error):
                        raise

    def fetch(self, sql: str) -> list[tuple[Any, ...]]:
        self._refuse_write(sql)
        with self._guarded():
            return [tuple(row.values()) for row in self._run(sql).result(timeout=REQUEST_SECONDS)]

    def fetch_arrow(self, sql: str) -> pa.Table:
        self._refuse_write(sql)
        with self._guarded():
            rows = self._run(sql).result(timeout=REQUEST_SECONDS)
            return rows.to_arrow(create_bqstorage_client=False)

    def columns_of(self, relation: str) -> dict[str, str] | None:
        try:
            if relation.lstrip().startswith("("):
                return self._columns_of_query(relation)
            with speaking():
                return {field.name: spelled(field) for field in self._table(relation).schema}
        except MissingTable:
            return None

    def _table(self, relation: str) -> Any:
        """Return what BigQuery knows of a table: no job, no cost, and no filter on partitions asked for."""
        parts = claims.parts_of(relation, self._engine.project, self._engine.dataset)
        return self._open_jobs.client.get_table(
            _reference(parts), retry=patiently(), timeout=REQUEST_SECONDS
        )

    def _columns_of_query(self, relation: str) -> dict[str, str]:
        with speaking():
            job = self._open_jobs.query(f"SELECT * FROM {relation}", dry_run=True)
        return {field.name: spelled(field) for field in job.schema or ()}

    def prepare(self, claim: Claim) -> None:
        """Make what the claim needs, label every job from now on, and count from here what is billed."""
        parts = claims.parts_of(claim.relation, self._engine.project, self._engine.dataset)
        self.label(
            table=f"{parts[1]}-{parts[2]}",
            partition=claim.label.partition(" ")[2],
            run=claim.holder,
            backfill=claim.backfill,
        )
        with contextlib.suppress(MissingTable):  # the dataset of a first load is made later
            self._make_claimable(parts)
        self._billed_before = self._open_jobs.billed

    def may_cost(self, most: float | None) -> None:
        jobs, own = self._open_jobs, self._engine.limits
        # the last words of a slice, its audit row among them, have to fit too
        left = None if most is None else max(most, _BOOKKEEPING_BYTES)
        caps = [cap for cap in (own.billed, left) if cap is not None]
        jobs.limits = replace(own, billed=int(min(caps)) if caps else None)

    def cost(self, seconds: float) -> float | None:
        """Return the bytes that were billed for jobs since `prepare`."""
        return float(self._open_jobs.billed - self._billed_before)

    def bytes_of(self, sql: str) -> int | None:
        """Return the bytes that BigQuery says a query would read."""
        with speaking():
            return self._open_jobs.query(sql, dry_run=True).total_bytes_processed

    def stage_arrow(self, name: str, data: pa.Table) -> str:
        for column in data.column_names:
            quoted(self.spelling, column)  # refuses a name that BigQuery does not take
        rows, types = loadable(data)
        relation = self._stage(name)
        with self._guarded():
            from google.cloud import bigquery

            schema = schema_of(types)
            parts = claims.parts_of(relation, self._engine.project, self._engine.dataset)
            table = bigquery.Table(_reference(parts), schema=schema)
            table.expires = _expiry()
            client = self._open_jobs.client
            client.create_table(table, retry=patiently(), timeout=REQUEST_SECONDS)
            if rows.num_rows:
                self._open_jobs.load(rows, table.reference, schema)
        return relation

    def stage_select(self, name: str, sql: str) -> str:
        relation = self._stage(name)
        with self._guarded():
            self._open_jobs.query(
                f"CREATE TABLE {relation} OPTIONS (expiration_timestamp = TIMESTAMP '{_expiry().isoformat(' ')}')"
                f" AS\n{sql}"
            )
        return relation

    def drop_stage(self, name: str) -> None:
        if self._jobs is None:
            return
        parts = (self._engine.project, self._engine.stage_dataset, name)
        with speaking():
            self._jobs.client.delete_table(
                _reference(parts), not_found_ok=True, retry=patiently(), timeout=REQUEST_SECONDS
            )

    def _stage(self, name: str) -> str:
        spelling, engine = self.spelling, self._engine
        return (
            f"`{engine.project}`.{quoted(spelling, engine.stage_dataset)}.{quoted(spelling, name)}"
        )

    def _started(self) -> int:
        """Begin; the first transaction makes the BigQuery session that later ones share."""
        with self._guarded():
            if not self._begun_again():
                self._locate()
                job: Any = self._open_jobs.query("BEGIN TRANSACTION", new_session=True)
                self._session = job.session_info.session_id
        self._inside = True
        return -1

    def _begun_again(self) -> bool:
        """Begin in the BigQuery session that is there; False where it has ended, by its age or by somebody's hand."""
        if self._session is None:
            return False
        try:
            with speaking():
                self._open_jobs.query("BEGIN TRANSACTION", session=self._session)
        except (WriteFailed, MissingTable):
            self._abandon()
            return False
        return True

    def _locate(self) -> None:
        """Find out where the dataset is: BEGIN names no table, and its session would be where BigQuery likes best."""
        if self._engine.location is None and self._open_jobs.location is None:
            place = f"{self._engine.project}.{self._engine.dataset}"
            with contextlib.suppress(MissingTable, MissingRight), speaking():
                dataset: Any = self._open_jobs.client.get_dataset(
                    place, retry=patiently(), timeout=REQUEST_SECONDS
                )
                self._open_jobs.location = dataset.location

    def _committed(self) -> int:
        with self._guarded():
            self._run("COMMIT")
        self._inside = False
        return -1

    def _rolled_back(self) -> int:
        begun, self._inside = self._inside, False
        if begun and self._session is not None:
            try:
                with speaking():
                    self._open_jobs.query("ROLLBACK TRANSACTION", session=self._session)
            except BackfillError:
                # BigQuery may have ended the transaction itself; a session in doubt is not used again
                self._abandon()
        return -1

    def claim(self, claim: Claim) -> None:
        self._refuse_reader()
        parts = claims.parts_of(claim.relation, self._engine.project, self._engine.dataset)
        if parts not in self._claimable:
            # nothing was done in the transaction yet, and it makes no tables
            self._rolled_back()
            self._make_claimable(parts)
            self._started()
        asked_at = time.monotonic()
        pause, was_told = _FIRST_PAUSE, False
        while not self._was_claimed(parts, claim):
            waited = time.monotonic() - asked_at
            left = self._engine.wait_seconds - waited
            if left <= 0:
                self._doomed = self._busy(parts, claim)
                raise self._doomed
            if waited > _TELL_AFTER_SECONDS and not was_told:
                was_told = True
                self._report(
                    f"{claim.label} is being rewritten by {self._held_by(parts)[0]}: waiting, up to {left:.0f} s more."
                )
            # apart from each other, or two that wait would meet again and again
            _pause(min(left, pause * random.uniform(0.5, 1.0)))
            pause = min(pause * 2, _LONGEST_PAUSE)
            self._started()

    def _was_claimed(self, parts: tuple[str, str, str], claim: Claim) -> bool:
        """Update the claim's row; False, with the transaction rolled back, where another has it."""
        try:
            with self._guarded():
                changed = self._run(
                    claims.claiming(self.spelling, parts, claim)
                ).num_dml_affected_rows
        except SliceBusy:
            self._rolled_back()
            self._doomed = None
            return False
        if not changed:
            raise WriteFailed(
                f"{claim.label} was left as it was",
                f"the table {claims.claim_table(self.spelling, parts)} holds no row, so no claim can be made",
                "Drop that table: it is made again, with its row",
            )
        # only so that others can say who it is
        with contextlib.suppress(*families()):
            self._open_jobs.query(
                claims.announcing(self.spelling, parts, claim, self._session or "")
            )
        return True

    def _make_claimable(self, parts: tuple[str, str, str]) -> None:
        if parts not in self._claimable:
            spelling = self.spelling
            needed = (
                claims.claim_table(spelling, parts),
                claims.beside(spelling, parts, claims.HOLDERS),
            )
            for relation, statement in zip(needed, claims.making(spelling, parts), strict=True):
                if self.columns_of(relation) is None:
                    self.define(statement)
            self._claimable.add(parts)

    def _busy(self, parts: tuple[str, str, str], claim: Claim) -> SliceBusy:
        holder, session = self._held_by(parts)
        kill = (
            f"; if it was killed, end its session with CALL BQ.ABORT_SESSION('{session}')"
            if session
            else ""
        )
        return SliceBusy(
            f"{claim.label} cannot be written now: its table is being rewritten by {holder}, so nothing was changed",
            f"it still was after {self._engine.wait_seconds:g} s, and BigQuery takes one transaction a table",
            f"Let that run finish, then launch this partition again{kill}",
        )

    def _held_by(self, parts: tuple[str, str, str]) -> tuple[str, str]:
        """Return who said last that it holds the claim, and its BigQuery session."""
        with contextlib.suppress(*families()):
            job: Any = self._open_jobs.query(claims.holding(self.spelling, parts))
            for holder, slice_, session in job.result(timeout=REQUEST_SECONDS):
                return f"run {holder} ({slice_})", str(session)
        return "another writer", ""

    def clock(self) -> datetime:
        with self._guarded():
            job = self._open_jobs.query("SELECT CURRENT_TIMESTAMP()")
            return next(iter(job.result(timeout=REQUEST_SECONDS)))[0].astimezone(timezone.utc)

    @property
    def _open_jobs(self) -> Jobs:
        if self._jobs is None:
            raise Unreachable("BigQuery is closed", "its session has ended", "Open a new session")
        return self._jobs

    def _run(self, sql: str) -> Any:
        """Run a statement of the transaction that is open, or of none."""
        session = self._session if self._inside else None
        if sql == "COMMIT" and session is not None:
            return self._open_jobs.commit(session)
        return self._open_jobs.query(sql, session=session)

    def _refuse_write(self, sql: str) -> None:
        if self._read_only:
            refuse_write(self.spelling.dialect, sql)

    def _refuse_reader(self) -> None:
        if self._read_only:
            raise opened_to_read()

    @contextlib.contextmanager
    def _guarded(self) -> Generator[None, None, None]:
        """Say the client's errors as ours, and remember the first: a transaction cannot go on after one."""
        try:
            yield
        except BackfillError as error:
            self._doomed = self._doomed or error
            raise
        except families() as error:
            ours = told(error)
            self._doomed = self._doomed or ours
            raise ours from shown_cause(error)


def _reference(parts: tuple[str, str, str]) -> Any:
    from google.cloud import bigquery

    return bigquery.TableReference(bigquery.DatasetReference(parts[0], parts[1]), parts[2])


def _pause(seconds: float) -> None:
    time.sleep(seconds)


def _expiry() -> datetime:
    return datetime.now(timezone.utc).replace(microsecond=0) + timedelta(hours=_STAGE_HOURS)
