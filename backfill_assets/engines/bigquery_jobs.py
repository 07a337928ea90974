"""Jobs of BigQuery: each one labelled, limited in time and in bytes, and its error said as ours."""

from __future__ import annotations

import contextlib
import re
import tempfile
import uuid
from collections.abc import Generator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from backfill_assets.engines.bigquery_errors import families, told
from backfill_assets.engines.wording import unknown_outcome
from backfill_assets.errors import Away, shown_cause

if TYPE_CHECKING:
    import pyarrow as pa
    from google.cloud import bigquery

# how long one request may take, and for how long it is asked again where nobody answers
REQUEST_SECONDS = 60.0
PATIENCE_SECONDS = 120.0
_NOT_IN_LABELS = re.compile(r"[^a-z0-9_-]+")
_LONGEST_LABEL = 63


@dataclass(frozen=True)
class Limits:
    """What one job may take: `seconds` of time (None without a limit) and `billed` bytes, and who carries it out."""

    seconds: float | None = None
    billed: int | None = None
    reservation: str | None = None


@dataclass
class Jobs:
    """Runs statements as jobs of one client; `labels` go with every one, `billed` adds up the bytes that they cost.

    `location` is where jobs run; None leaves it to what each one reads.
    """

    client: bigquery.Client
    dataset: str
    limits: Limits
    labels: dict[str, str] = field(default_factory=dict[str, str])
    billed: int = 0
    location: str | None = None

    def query(
        self,
        sql: str,
        *,
        session: str | None = None,
        new_session: bool = False,
        dry_run: bool = False,
        job_id: str | None = None,
    ) -> bigquery.QueryJob:
        """Run one statement to its end; inside the session of that id where one is given."""
        from google.cloud import bigquery

        options: dict[str, Any] = {"dry_run": True, "use_query_cache": False} if dry_run else {}
        config = bigquery.QueryJobConfig(
            default_dataset=self.dataset, labels=dict(self.labels), **options
        )
        if self.limits.billed is not None:
            config.maximum_bytes_billed = self.limits.billed
        if self.limits.seconds is not None:
            config.job_timeout_ms = round(self.limits.seconds * 1000)
        if self.limits.reservation is not None:
            config.reservation = self.limits.reservation
        if session is not None:
            config.connection_properties = [bigquery.ConnectionProperty("session_id", session)]
        elif new_session:
            config.create_session = True
        job = self._sent(sql, config, job_id or f"backfill_assets_{uuid.uuid4().hex}")
        if not dry_run:
            self._finish(job)
            self.billed += job.total_bytes_billed or 0
        return job

    def _sent(self, sql: str, config: bigquery.QueryJobConfig, job_id: str) -> Any:
        from google.api_core.exceptions import Conflict

        try:
            # `job_retry`: a statement of a transaction that is run again by itself would be no part of what it was
            return self.client.query(
                sql,
                job_config=config,
                job_id=job_id,
                location=self.location,
                retry=patiently(),
                timeout=REQUEST_SECONDS,
                job_retry=None,
            )
        except Conflict as error:
            # the answer to the first request was lost, and the client asked again: the job of our name is under way
            if f"job {self.client.project}:".lower() not in str(error).lower():
                raise
            return self._named(job_id)

    def _named(self, job_id: str) -> Any:
        return self.client.get_job(
            job_id, location=self.location, retry=patiently(), timeout=REQUEST_SECONDS
        )

    def _finish(self, job: Any) -> None:
        """Wait for a job; whoever stops waiting stops the job as well, or it would go on in the transaction."""
        # BigQuery itself stops the job; ours is for one that it forgot
        limit = None if self.limits.seconds is None else self.limits.seconds + REQUEST_SECONDS
        try:
            options = {"job_retry": None} if hasattr(job, "num_dml_affected_rows") else {}
            job.result(retry=patiently(), timeout=limit, **options)
        except BaseException:
            if job.state != "DONE":
                with contextlib.suppress(*families()):
                    job.cancel(retry=None, timeout=REQUEST_SECONDS)
            raise

    def load(self, data: pa.Table, destination: Any, schema: list[Any]) -> None:
        """Append a frame to a table that is there, by a load job, which costs no bytes."""
        import pyarrow.parquet
        from google.cloud import bigquery

        parquet: Any = pyarrow.parquet

        config = bigquery.LoadJobConfig(
            source_format=bigquery.SourceFormat.PARQUET,
            schema=schema,
            write_disposition=bigquery.WriteDisposition.WRITE_APPEND,
            create_disposition=bigquery.CreateDisposition.CREATE_NEVER,
            labels=dict(self.labels),
        )
        if self.limits.seconds is not None:
            config.job_timeout_ms = round(self.limits.seconds * 1000)
        with tempfile.TemporaryFile() as file:
            # no tables of Arrow types inside: they would say again, and otherwise, what the schema says
            parquet.write_table(data, file, store_schema=False)
            job = self.client.load_table_from_file(
                file,
                destination,
                rewind=True,
                job_id=f"backfill_assets_{uuid.uuid4().hex}",
                job_config=config,
                timeout=REQUEST_SECONDS,
            )
            self._finish(job)

    def commit(self, session: str) -> None:
        """Commit; where the answer is lost, ask what became of the job, which has a name of ours."""
        job_id = f"backfill_assets_{uuid.uuid4().hex}"
        try:
            with speaking():
                self.query("COMMIT TRANSACTION", session=session, job_id=job_id)
        except Away as error:
            if not self._was_done(job_id):
                raise unknown_outcome(error) from error

    def _was_done(self, job_id: str) -> bool:
        """Tell whether the job is known to have ended well; raise its error where it is known to have failed."""
        try:
            job = self._named(job_id)
        except families():  # also where nobody knows the job: it may still be on its way
            return False
        if job.state == "DONE" and job.error_result:
            with speaking():
                job.result(retry=None, timeout=REQUEST_SECONDS)
        return bool(job.state == "DONE")


def label(text: str) -> str:
    """Return `text` as the value of a label: small letters, digits, `_` and `-`, 63 of them at most."""
    return _NOT_IN_LABELS.sub("-", text.lower())[:_LONGEST_LABEL]


@contextlib.contextmanager
def speaking() -> Generator[None, None, None]:
    """Say the client's errors as ours."""
    try:
        yield
    except families() as error:
        raise told(error) from shown_cause(error)


def patiently() -> Any:
    """Return how the client asks again where nobody answers; never for longer than it takes to notice."""
    from google.cloud.bigquery.retry import DEFAULT_RETRY

    return DEFAULT_RETRY.with_timeout(PATIENCE_SECONDS)
