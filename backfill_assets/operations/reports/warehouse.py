"""What the warehouse knows of a table's planned slices: the audit's rows, the source's counts. Reads and never writes."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from backfill_assets.checks.by_slice import Buckets
from backfill_assets.engines import Session
from backfill_assets.engines.protocol import replacing
from backfill_assets.errors import BackfillError, MissingTable
from backfill_assets.operations.source_rows import late_rows, rows_of_select, rows_of_source
from backfill_assets.slice import Slice
from backfill_assets.table import Table
from backfill_assets.writing import AuditTable, Load, Select
from backfill_assets.writing.audit import Told, dimensions_of

# where no transaction holds several statements, a writer that dies leaves an intent without an end
UNFINISHED = (
    "its writer ended while it replaced the slice, which is whole, old or new; the next run of this partition finds out"
    " which, and tells it in load_audit"
)
_Key = tuple[str, "datetime | None", "datetime | None"]


@dataclass
class SliceFacts:
    """One slice: the loads of the backfill, what it refused, and the newest load by anybody else."""

    loads: list[Told] = field(default_factory=list[Told])
    attempt: Load | None = None
    other: Load | None = None
    source: int | None = None
    late: int | None = None

    @property
    def read_before(self) -> datetime | None:
        """When the source was read for the load that the backfill replaced."""
        return self.loads[0].read_before if self.loads else None

    @property
    def attempt_why(self) -> str:
        """Why the audit says that the slice was refused or failed, or that nobody knows yet."""
        if self.attempt is not None and self.attempt.outcome == "intended":
            return UNFINISHED
        try:
            found = json.loads((self.attempt and self.attempt.detail) or "{}")
        except ValueError:
            return ""
        return str(found.get("why") or "") if isinstance(found, dict) else ""


def facts_of(
    session: Session,
    audit: AuditTable,
    table: Table,
    slices: Sequence[Slice],
    select: Select | None,
    backfill: str,
    runs: AbstractSet[str],
) -> tuple[list[SliceFacts], list[str]]:
    """Return the facts of each slice, and in words what could not be found out.

    A load belongs to the backfill if it says so, or if one of its `runs` wrote it: a run that is executed again after
    the backfill's end still does its work.
    """
    found: dict[_Key, SliceFacts] = {}
    for told in audit.told(session, table, Buckets.of(slices).whole, backfill):
        load = told.load
        facts = found.setdefault(
            (load.dimensions, load.window_start, load.window_end), SliceFacts()
        )
        mine = load.backfill_id == backfill or load.run_id in runs
        if load.outcome != "committed":
            facts.attempt = load if mine else facts.attempt
        elif mine:
            facts.loads.append(told)
        else:
            facts.other = load
    for intent in _unfinished(session, audit, table, slices):
        if intent.backfill_id == backfill or intent.run_id in runs:
            facts = found.setdefault(
                (intent.dimensions, intent.window_start, intent.window_end), SliceFacts()
            )
            if facts.attempt is None or facts.attempt.committed_at < intent.committed_at:
                facts.attempt = intent
    listed = [found.get(_key(slice_)) or SliceFacts() for slice_ in slices]
    notes = _count_source(session, table, slices, select, listed)
    return listed, notes


def _unfinished(
    session: Session, audit: AuditTable, table: Table, slices: Sequence[Slice]
) -> list[Load]:
    """Return the attempts that nobody knows the end of; where transactions replace slices there are none."""
    if replacing(session) is None:
        return []
    with contextlib.suppress(MissingTable):  # nothing was ever written
        return audit.unfinished(session, table, Buckets.of(slices).whole)
    return []


def _count_source(
    session: Session,
    table: Table,
    slices: Sequence[Slice],
    select: Select | None,
    facts: list[SliceFacts],
) -> list[str]:
    source = table.source
    if source is None and select is None:
        return []
    notes: list[str] = []
    try:
        rows = (
            rows_of_source(session, table, slices, source)
            if source is not None
            else rows_of_select(session, table, slices, select)  # pyright: ignore[reportArgumentType]
        )
        for one, count in zip(facts, rows, strict=True):
            one.source = count
    except BackfillError as error:
        notes.append(f"The source's rows could not be counted: {error}")
    if source is None or source.ingested_at is None or notes:
        return notes
    try:
        late = late_rows(session, table, slices, source, [one.read_before for one in facts])
        for one, count in zip(facts, late, strict=True):
            one.late = count
    except BackfillError as error:
        notes.append(f"Late rows could not be counted: {error}")
    return notes


def _key(slice_: Slice) -> _Key:
    window: Any = slice_.window
    return dimensions_of(slice_), window and window.start, window and window.end
