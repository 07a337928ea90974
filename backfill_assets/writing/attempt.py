"""One attempt at a slice, staged and measured: what is left is to put its rows in the place of those that are there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from backfill_assets.engines.protocol import Claim, Session
from backfill_assets.errors import StaleSource
from backfill_assets.slice import Slice
from backfill_assets.writing.audit import AuditTable, Load
from backfill_assets.writing.expecting import Finding
from backfill_assets.writing.fit import Fit
from backfill_assets.writing.measure import Facts
from backfill_assets.writing.run import Run


@dataclass(frozen=True)
class Attempt:
    """What is to be written, by whom, and what is known of it; `audit_id` is that of the row that tells its end.

    `read_at` and `started` are on the warehouse's clock; `staged` are the facts of the rows in `stage`.
    """

    slice_: Slice
    run: Run
    audit: AuditTable
    audit_id: str
    claim: Claim
    read_at: datetime
    started: datetime
    found: Fit
    stage: str
    staged: Facts
    findings: Sequence[Finding]

    def refuse_stale(self, session: Session) -> None:
        """Raise where the rows that are there were read later than those that are to come."""
        newer = self.audit.newer_read(session, self.slice_, self.read_at)
        if newer is not None:
            raise StaleSource(
                f"{self.slice_.label} was left as it was",
                f"run {newer[0][:8]} wrote it from a source read at {newer[1].isoformat()}, after this run read its"
                f" own at {self.read_at.isoformat()}",
                "Launch this partition again, so that it reads the source as it is now",
            )

    def load(
        self,
        session: Session,
        before: int,
        written: Facts,
        outcome: str = "committed",
        **detail: object,
    ) -> Load:
        """Return the audit row of the attempt as it stands now."""
        now = session.clock()
        return Load.of(
            self.slice_,
            self.run,
            source_read_at=self.read_at,
            started_at=self.started,
            committed_at=now,
            outcome=outcome,
            rows_before=before,
            rows_after=written.rows,
            checksum=written.checksum,
            cost=session.cost((now - self.started).total_seconds()),
            audit_id=self.audit_id,
            findings=[finding.as_plain() for finding in self.findings],
            **detail,
        )
