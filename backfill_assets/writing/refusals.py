"""The audit row of an attempt that changed nothing: who tried, when, how long it took, and why it was refused."""

from __future__ import annotations

import contextlib
import logging
from datetime import timedelta

from backfill_assets.engines.protocol import Session, replacing
from backfill_assets.engines.sql import predicate, qualified
from backfill_assets.errors import BackfillError, DeclarationError, Refused
from backfill_assets.slice import Slice
from backfill_assets.writing.audit import AuditTable, Load
from backfill_assets.writing.run import Run

_log = logging.getLogger(__name__)


def record_refusal(
    session: Session,
    slice_: Slice,
    run: Run,
    audit: AuditTable,
    seconds: float,
    error: BackfillError,
    audit_id: str,
) -> None:
    """Record an attempt that ended with `error` after `seconds`; that it cannot be recorded never hides the error itself."""
    try:
        rows = _rows_there(session, slice_)
        # one row is whole by itself, where there are no transactions
        with contextlib.nullcontext() if replacing(session) else session.transaction():
            now = session.clock()
            started = now - timedelta(seconds=seconds)
            load = Load.of(
                slice_,
                run,
                source_read_at=run.source_read_at or started,
                started_at=started,
                committed_at=now,
                outcome="refused" if isinstance(error, (Refused, DeclarationError)) else "failed",
                rows_before=rows,
                rows_after=rows,
                checksum="",
                audit_id=audit_id,
                error=type(error).__name__,
                why=str(error),
            )
            audit.record(session, load)
    except BackfillError as second:
        _log.warning("The refused attempt at %s could not be audited: %s", slice_.label, second)


def _rows_there(session: Session, slice_: Slice) -> int:
    with contextlib.suppress(BackfillError):  # the table may not be there yet
        relation = qualified(session.spelling, slice_.table)
        if session.columns_of(relation) is not None:
            where = predicate(session.spelling, slice_)
            return int(session.fetch(f"SELECT count(*) FROM {relation} WHERE {where}")[0][0])
    return 0
