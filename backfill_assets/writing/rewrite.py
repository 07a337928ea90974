"""The one way a slice reaches a table: stage, then claim, delete, insert, verify, audit, all or nothing."""

from __future__ import annotations

import contextlib
import logging
import time
import uuid
from collections.abc import Generator
from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING, Union

from backfill_assets.engines.protocol import Session, replacing
from backfill_assets.engines.sql import listed, predicate, qualified
from backfill_assets.errors import BackfillError, OutcomeUnknown, StaleSource
from backfill_assets.slice import Slice
from backfill_assets.writing import arrow, measure
from backfill_assets.writing.attempt import Attempt
from backfill_assets.writing.audit import AuditTable, Load
from backfill_assets.writing.claims import claim_of
from backfill_assets.writing.expecting import findings_of, refuse_unexpected
from backfill_assets.writing.fit import Fit, Stage, by_key, fit, make_room, resolved
from backfill_assets.writing.refusals import record_refusal
from backfill_assets.writing.replacing import replace_slice
from backfill_assets.writing.run import Run
from backfill_assets.writing.select import Select
from backfill_assets.writing.unfinished import settle_forsaken

if TYPE_CHECKING:
    import pyarrow as pa

Rows = Union["pa.Table", Select]

_READS = 3
_SKEW = timedelta(seconds=1)
_log = logging.getLogger(__name__)


def rewrite(
    session: Session, slice_: Slice, rows: Rows, run: Run, audit: AuditTable = AuditTable()
) -> Load:
    """Replace the rows of `slice_` by `rows` and return the audit row of it.

    Either everything is done or nothing: on any error (a `BackfillError`) the slice holds its old rows, and the audit
    row of the attempt says `refused` or `failed` and why; only after `OutcomeUnknown` it holds either, whole. A `Select` whose source was overtaken while it
    was read is read again.
    """
    audit.ensure(session)
    if (without := replacing(session)) is not None:
        audit.intents.ensure(session)
    audit_id, began = uuid.uuid4().hex, time.monotonic()
    try:
        if without is not None:
            settle_forsaken(without, slice_.table, audit)
        return _attempts(session, slice_, rows, run, audit, audit_id)
    except OutcomeUnknown:
        raise  # what became of the attempt stands in the audit already, or nowhere
    except BackfillError as error:
        record_refusal(session, slice_, run, audit, time.monotonic() - began, error, audit_id)
        raise


def _attempts(
    session: Session, slice_: Slice, rows: Rows, run: Run, audit: AuditTable, audit_id: str
) -> Load:
    for read in range(1, _READS + 1):
        try:
            return _attempt(session, slice_, rows, run, audit, audit_id)
        except StaleSource:
            if not isinstance(rows, Select) or read == _READS:
                raise
            _log.info("%s was written while its source was read; reading again.", slice_.label)
    raise AssertionError("unreachable")


def _attempt(
    session: Session, slice_: Slice, rows: Rows, run: Run, audit: AuditTable, audit_id: str
) -> Load:
    started = session.clock()
    read_at = started
    if run.source_read_at is not None and not isinstance(rows, Select):
        read_at = _on_the_warehouse_clock(run.source_read_at, started)
    claim = claim_of(session.spelling, slice_, run.run_id, run.backfill_id)
    session.prepare(claim)
    with _staged(session, slice_, rows) as stage:
        found = fit(session, slice_, stage)
        staged, more = measure.facts_of_stage(session, slice_, found, stage.relation, run)
        measure.refuse_empty(slice_, staged, run)
        if make_room(session, slice_.table, found):  # a twin may have made it first, and otherwise
            found = fit(session, slice_, stage)
            staged, more = measure.facts_of_stage(session, slice_, found, stage.relation, run)
        rows_to_be = found.select(session.spelling, stage.relation)
        findings = findings_of(session, slice_, rows_to_be, more, run, audit)
        refuse_unexpected(slice_, findings)
        attempt = Attempt(
            slice_,
            run,
            audit,
            audit_id,
            claim,
            read_at,
            started,
            found,
            stage.relation,
            staged,
            findings,
        )
        if (without := replacing(session)) is not None:
            return replace_slice(without, attempt)
        load = _rewrite_in_a_transaction(session, attempt)
    audit.must_hold(session, load)
    return load


def _rewrite_in_a_transaction(session: Session, attempt: Attempt) -> Load:
    slice_, staged = attempt.slice_, attempt.staged
    with session.transaction():
        session.claim(attempt.claim)
        attempt.refuse_stale(session)
        before = _delete(session, slice_)
        measure.refuse_shrunk(slice_, before, staged, attempt.run)
        inserted = _insert(session, slice_, attempt.found, attempt.stage)
        written = measure.facts_of_table(session, slice_, attempt.found)
        measure.must_agree(slice_, staged, inserted, written)
        load = attempt.load(session, before, written)
        attempt.audit.record(session, load)
    return load


def _on_the_warehouse_clock(told: datetime, warehouse_now: datetime) -> datetime:
    """Correct a time that this machine told, if its clock and the warehouse's visibly differ.

    A smaller difference may be the round trip's: correcting it would make two runs from one read differ.
    """
    skew = warehouse_now - datetime.now(timezone.utc)
    return min(told + skew if abs(skew) >= _SKEW else told, warehouse_now)


@contextlib.contextmanager
def _staged(session: Session, slice_: Slice, rows: Rows) -> Generator[Stage, None, None]:
    """Put the rows beside the table, under a name of this attempt alone, and remove them whatever happens."""
    name = f"backfill_stage_{uuid.uuid4().hex}"
    try:
        if isinstance(rows, Select):
            query = resolved(session, slice_, rows).for_slice(session.spelling, slice_)
            yield Stage(session.stage_select(name, query))
        else:
            arrow.must_have_columns(rows, slice_.label)
            # engines rename twins, so they have to be found here
            by_key(rows.column_names, session.spelling, f"the rows for {slice_.label}")
            data = arrow.plain(rows, slice_.label)
            yield Stage(session.stage_arrow(name, data), arrow.untyped(data), arrow.undecided(rows))
    finally:
        # the first error is the one to tell, and the session's end cleans up as well
        with contextlib.suppress(BackfillError):
            session.drop_stage(name)


def _delete(session: Session, slice_: Slice) -> int:
    spelling = session.spelling
    return session.execute(
        f"DELETE FROM {qualified(spelling, slice_.table)} WHERE {predicate(spelling, slice_)}"
    )


def _insert(session: Session, slice_: Slice, found: Fit, stage: str) -> int:
    spelling = session.spelling
    return session.execute(
        f"INSERT INTO {qualified(spelling, slice_.table)} ({listed(spelling, found.names)})"
        f" {found.select(spelling, stage)}"
    )
