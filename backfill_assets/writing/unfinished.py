"""What became of a writer that died in the middle, where no transaction undoes its work: told by what the slice holds."""

from __future__ import annotations

import contextlib
import json
import logging
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any
from weakref import WeakKeyDictionary

from backfill_assets.engines.protocol import Replacing
from backfill_assets.engines.sql import predicate, qualified
from backfill_assets.errors import BackfillError, SliceBusy, Unsettled
from backfill_assets.slice import Slice
from backfill_assets.table import Table
from backfill_assets.window import Window
from backfill_assets.writing import measure
from backfill_assets.writing.audit import AuditTable, Load, may_meet
from backfill_assets.writing.claims import claim_of
from backfill_assets.writing.run import Run

_log = logging.getLogger(__name__)
# the tables whose forsaken intents a session has looked for
_looked: WeakKeyDictionary[Replacing, set[str]] = WeakKeyDictionary()
# what the intent alone needs to know
_NOT_KEPT = ("columns", "checksum_before")


def settle(
    session: Replacing, slice_: Slice, audit: AuditTable, run: Run, now: datetime
) -> list[Load]:
    """Tell the end of every intent that touches `slice_`, whose claim is held; return those whose writer may be at it.

    Raise `Unsettled` where the slice holds neither what such a writer found nor what it was to write, unless the run
    may pass that.
    """
    uncertain: list[Load] = []
    for intent in audit.unfinished(session, slice_.table, slice_.window):
        if not may_meet(slice_, intent.dimensions):
            continue
        held = _holds(session, slice_.table, intent)
        if held == "old" and not _is_forsaken(session, intent, now):
            # its statement may still run in the warehouse: only our own, which it cannot pass, makes an end of it
            uncertain.append(intent)
        elif not _told(session, slice_.table, audit, intent, held):
            _stop_unless_allowed(session, slice_, audit, intent, run)
    return uncertain


def settle_forsaken(session: Replacing, table: Table, audit: AuditTable) -> None:
    """Tell the end of every intent of `table` that is older than a claim can be; asked once a session.

    What cannot be told here stays for whoever writes that slice, and is logged.
    """
    seen = _looked.setdefault(session, set())
    if table.qualified in seen:
        return
    seen.add(table.qualified)
    intents = audit.unfinished(session, table)
    now = session.clock() if intents else None
    for intent in intents:
        if now is None or not _is_forsaken(session, intent, now):
            continue
        try:
            claim = claim_of(session.spelling, _slice_of(table, intent), "settling")
            session.prepare(claim)
            with contextlib.suppress(SliceBusy), session.hold(claim, wait=False):
                held = _holds(session, table, intent)
                if not _told(session, table, audit, intent, held):
                    _log.warning("%s", _unsettled(session, table, intent))
        except BackfillError as error:
            _log.warning(
                "What became of run %s at %s %s could not be found out: %s",
                intent.run_id, intent.table_name, intent.partition_key, error,
            )  # fmt: skip


def give_up(session: Replacing, audit: AuditTable, intent: Load, why: str) -> None:
    """Record that an intent was never carried out."""
    why = f"the run ended before it replaced the slice ({why})"
    _conclude(session, audit, intent, "failed", why, rows_after=intent.rows_before, checksum="")


def _told(session: Replacing, table: Table, audit: AuditTable, intent: Load, held: str) -> bool:
    """Record the end of an intent by what its slice holds; False where that tells nothing."""
    if held == "new":
        why = "the run ended after it replaced the slice and before it said so; the slice holds exactly its rows"
        _conclude(session, audit, intent, "committed", why)
    elif held == "old":
        give_up(session, audit, intent, "the slice holds what it held before")
    # somebody may have told it, and have written the slice, while we read
    return held != "else" or all(
        other.audit_id != intent.audit_id for other in audit.unfinished(session, table)
    )


def _holds(session: Replacing, table: Table, intent: Load) -> str:
    """Return what the slice of an intent holds: what was to be written (`new`), what was there (`old`), or `else`."""
    told = _detail(intent)
    now = measure.facts_of_columns(session, _slice_of(table, intent), told["columns"])
    if now == measure.Facts(intent.rows_after, intent.checksum):
        return "new"
    was = measure.Facts(intent.rows_before, told["checksum_before"])
    return "old" if now == was else "else"


def _stop_unless_allowed(
    session: Replacing, slice_: Slice, audit: AuditTable, intent: Load, run: Run
) -> None:
    error = _unsettled(session, slice_.table, intent)
    if "unfinished" not in run.allows:
        raise error
    why = f"what became of it is not known, and run {run.run_id} was launched to pass that: {run.reason}"
    _conclude(session, audit, intent, "failed", why, checksum="")


def _unsettled(session: Replacing, table: Table, intent: Load) -> Unsettled:
    relation = qualified(session.spelling, table)
    condition = predicate(session.spelling, _slice_of(table, intent))
    return Unsettled(
        f"{intent.table_name} {intent.partition_key} was left as it is",
        f"run {intent.run_id} ended at {intent.committed_at.isoformat(timespec='seconds')} while it replaced it, and it"
        f" holds neither the {intent.rows_before} rows that were there nor the {intent.rows_after} that were to come, so"
        " that somebody else has written it",
        f"Look at it (DESCRIBE HISTORY {relation}; it was right in version {_detail(intent).get('version_before')}, WHERE"
        f" {condition}), then launch with the run tags allow=unfinished and reason=...",
    )


def _conclude(
    session: Replacing, audit: AuditTable, intent: Load, outcome: str, why: str, **changed: Any
) -> None:
    """Record the row that tells an intent's end; its times are the intent's, which are right to the second."""
    told = {name: value for name, value in _detail(intent).items() if name not in _NOT_KEPT}
    told |= {"why": why} if outcome == "failed" else {"settled": why}
    load = replace(
        intent,
        outcome=outcome,
        cost=session.cost(intent.seconds),
        detail=json.dumps(told, ensure_ascii=False),
        **changed,
    )
    audit.record(session, load)
    _log.warning(
        "%s %s of run %s: %s.", intent.table_name, intent.partition_key, intent.run_id, why
    )


def _is_forsaken(session: Replacing, intent: Load, now: datetime) -> bool:
    """Tell whether an intent is older than its writer's claim can be."""
    return now - intent.committed_at > timedelta(seconds=session.lease_seconds)


def _slice_of(table: Table, intent: Load) -> Slice:
    start, end = intent.window_start, intent.window_end
    window = Window(start, end) if start is not None and end is not None else None
    fixed = tuple(json.loads(intent.dimensions).items())
    return Slice(table, window, fixed, intent.partition_key)


def _detail(intent: Load) -> dict[str, Any]:
    return json.loads(intent.detail or "{}")
