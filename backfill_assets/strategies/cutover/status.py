"""Where a migration is, by its log and by what the view really reads; and ending what a run left unfinished.

Nothing is ever called done by the log alone.
"""

from __future__ import annotations

import time
import uuid
from dataclasses import dataclass, replace
from datetime import datetime

from backfill_assets.engines.protocol import Session
from backfill_assets.errors import BackfillError, DeclarationError, MissingTable, Refused
from backfill_assets.strategies.cutover.moves import Entry, Moves
from backfill_assets.strategies.cutover.order import Order
from backfill_assets.strategies.cutover.states import FIRST, RETIRE, UNDERWAY, State, words
from backfill_assets.strategies.cutover.views import View, defined, is_there, look, same
from backfill_assets.strategies.dual_write import FileSide, Migration
from backfill_assets.table import Table

# a move that began so many seconds ago may be going on; beyond it, whoever began it has ended
PATIENCE_SECONDS = 5.0
_ASK_AGAIN_SECONDS = 0.2


@dataclass(frozen=True)
class Status:
    """Where a migration is: `state` by the log and by what the view really reads, which is `reads`.

    `reads` is 'old', 'new', or why it is neither. `since`, `by`, `reason`, `overridden`: of the state's entry, None
    where nobody ever moved anything. `unfinished` says what has begun and not ended, or what the log does not know.
    `refusals` and `plan` are what a dry run found: why it would not be done, and what would be.
    """

    migration: str
    state: State
    reads: str
    since: datetime | None = None
    by: str | None = None
    reason: str | None = None
    overridden: str | None = None
    unfinished: str | None = None
    refusals: tuple[str, ...] = ()
    plan: tuple[str, ...] = ()

    @property
    def told(self) -> str:
        """The status in a sentence."""
        who = f", since {self.since:%Y-%m-%d %H:%M} UTC by {self.by}: {self.reason}" if self.since else ""  # fmt: skip
        more = f" {self.unfinished}." if self.unfinished else ""
        return f"{self.migration} is {self.state} ({words(self.state)}; the view reads {self.reads}{who}).{more}"


@dataclass(frozen=True)
class Seen:
    """The view as it is now: `reads` 'old', 'new' or why neither, and the view itself where we can read it."""

    reads: str
    view: View | None
    why: BackfillError | None = None


def status(session: Session, migration: Migration, *, schema: str = "backfill") -> Status:
    """Return where the migration is; writes nothing, and says done of nothing that is not."""
    last = Moves(migration.name, schema).last(session)
    found = seen(session, migration)
    return status_of(migration, last, found.reads, is_gone(session, migration, last))


def settle(session: Session, migration: Migration, order: Order) -> None:
    """End what another run began and did not end, by what the view really reads; give a run that is at it a moment."""
    moves = Moves(migration.name, order.schema)
    until = time.monotonic() + PATIENCE_SECONDS
    while (last := moves.last(session)) is not None and last.state in UNDERWAY:
        began = (session.clock() - last.at).total_seconds()
        if began > PATIENCE_SECONDS or time.monotonic() > until:
            break
        time.sleep(_ASK_AGAIN_SECONDS)
    found = status_of(migration, last, seen(session, migration).reads, is_gone(session, migration, last))  # fmt: skip
    if found.unfinished is None:
        return
    order.report(found.told)
    with moves.alone(session, f"run {order.run_id[:8]}"):
        own = Entry(
            migration.name, 0, found.state, uuid.uuid4().hex, session.clock(), order.by,
            found.unfinished, order.run_id,
        )  # fmt: skip
        settled(session, migration, moves, own, f"settled by run {order.run_id}")


def settled(session: Session, migration: Migration, moves: Moves, own: Entry, detail: str | None, *, only_own: bool = False) -> None:  # fmt: skip
    """Let the log say what the view reads, by the moves that are allowed; belongs under the claim.

    `own` says who settles; `only_own` leaves alone what another run has begun.
    """
    last, reads = moves.last(session), _reads(session, migration)
    state = last.state if last is not None else FIRST
    if only_own and last is not None and state in UNDERWAY and last.move_id != own.move_id:
        return
    if last is not None and state == RETIRE.going:
        done = is_gone(session, migration, last)
        moves.enter(session, RETIRE.end if done else "cut_over", last, detail=detail)
        return
    if reads not in ("old", "new"):
        return  # nothing to converge to: a person has to give readers a view again
    wanted: State = "dual_writing" if reads == "old" else "cut_over"
    if state in UNDERWAY and last is not None:
        moves.enter(session, wanted, last, detail=detail)
    elif state in ("dual_writing", "cut_over") and state != wanted:
        # somebody replaced the view without these jobs, or so late that another run had settled it
        for step in ("cutting_over" if reads == "new" else "rolling_back", wanted):
            moves.enter(session, step, own, detail=detail or "found so")


def status_of(migration: Migration, last: Entry | None, reads: str, is_gone: bool) -> Status:
    """Return the status by the log's newest entry, what the view reads, and whether the old table is gone."""
    state: State = last.state if last is not None else FIRST
    unfinished = None
    if state in UNDERWAY and last is not None:
        unfinished = f"{UNDERWAY[state].name} by run {last.run_id} has begun and not ended; starting any of the jobs again settles it"  # fmt: skip
    elif (state == "dual_writing" and reads == "new") or (state == "cut_over" and reads == "old"):
        unfinished = f"the log says {state}, and the view reads {reads}: it was replaced without these jobs"  # fmt: skip
        state = "dual_writing" if reads == "old" else "cut_over"
    elif state in ("cut_over", "retired") and reads != "new":
        unfinished = f"the log says {state}, and the view does not read the new table"
        state = "cutting_over" if state == "cut_over" else "retiring"
    elif state == "dual_writing" and reads != "old":
        unfinished = "the log says dual_writing, and the view does not read the old table"
    elif state == "retired" and not is_gone:
        unfinished, state = "the log says retired, and the old table is there", "retiring"
    found = Status(migration.name, state, reads, unfinished=unfinished)
    if last is None:
        return found
    return replace(
        found, since=last.at, by=last.launched_by, reason=last.reason, overridden=last.overridden
    )


def seen(session: Session, migration: Migration) -> Seen:
    """Return what the view reads now."""
    try:
        view = look(session, view_of(migration))
    except (Refused, MissingTable) as error:
        return Seen(error.why, None, error)
    return Seen(_side(session, migration, view.reads), view)


def _reads(session: Session, migration: Migration) -> str:
    """Return the same in a word, by the catalog alone."""
    try:
        return _side(session, migration, defined(session, view_of(migration))[0])
    except Refused as error:
        return error.why


def _side(session: Session, migration: Migration, reads: Table) -> str:
    for side in ("old", "new"):
        if same(session, reads, getattr(migration, side).table):
            return side
    return f"it reads {reads.qualified}, which is neither {migration.old.name} nor {migration.new.name}"  # fmt: skip


def why_not(seen: Seen) -> str:
    return f"{seen.why.why}. {seen.why.do}" if seen.why is not None else seen.reads


def is_gone(session: Session, migration: Migration, last: Entry | None) -> bool:
    """Tell whether the old table is gone; asked only where that decides something."""
    if last is None or last.state not in (RETIRE.going, RETIRE.end):
        return False
    return not is_there(session, migration.old.table)


def view_of(migration: Migration) -> Table:
    if migration.view is None:
        raise DeclarationError(
            f"readers of the migration {migration.name} cannot be moved",
            "it declares no view",
            "Give Migration(view='schema.view'), and let readers read that",
        )
    return Table(migration.view)


def must_be_one_warehouse(migration: Migration, what: str) -> None:
    """Raise where one view cannot read both tables: they lie in two warehouses, or one of them is files."""
    view_of(migration)
    apart = isinstance(migration.old, FileSide) or isinstance(migration.new, FileSide)
    if apart or migration.old.warehouse != migration.new.warehouse:
        raise DeclarationError(
            what,
            f"{migration.old.name} and {migration.new.name} are not tables of one warehouse, so no view reads first one and then the other",
            "Copy the old table beside the new one, and declare that as the old side",
        )
