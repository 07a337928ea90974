"""Cut over and roll back: intent, flip, done, and a look through the view.

Where a replaced view is undone with its transaction, flip and done are one transaction. Elsewhere the flip is one
statement between two transactions, and the next start of any of the jobs says what came of it (`status.py`).
"""

from __future__ import annotations

import contextlib
import time
import uuid
from collections.abc import Sequence
from dataclasses import replace

from backfill_assets.engines.protocol import Report, Session, replacing
from backfill_assets.engines.sql import qualified
from backfill_assets.errors import (
    BackfillError,
    OutcomeUnknown,
    Refused,
    SliceBusy,
    Unreachable,
    WriteFailed,
)
from backfill_assets.strategies.cutover.guards import Guard, asked, must_know, named, together
from backfill_assets.strategies.cutover.moves import Entry, Moves
from backfill_assets.strategies.cutover.order import Order
from backfill_assets.strategies.cutover.retiring import retire
from backfill_assets.strategies.cutover.states import (
    CUT_OVER,
    ROLL_BACK,
    Move,
    Overtaken,
    is_allowed,
    words,
)
from backfill_assets.strategies.cutover.status import (
    Status,
    must_be_one_warehouse,
    seen,
    settle,
    settled,
    status,
    view_of,
    why_not,
)
from backfill_assets.strategies.cutover.verifying import wrong
from backfill_assets.strategies.cutover.views import View, look, obstacles
from backfill_assets.strategies.dual_write import Migration, Side

__all__ = ["Guard", "Status", "cut_over", "named", "retire", "roll_back", "status"]

# how long readers may wait behind a flip that waits for a lock itself, and how often it is tried
_LOCK_MILLISECONDS = 2000
_TRIES = 60
_PAUSE_SECONDS = 1.0
_ATTEMPTS = 3


def cut_over(
    session: Session,
    migration: Migration,
    guards: Sequence[Guard],
    *,
    by: str,
    reason: str,
    run_id: str,
    override: Sequence[str] = (),
    dry_run: bool = True,
    report: Report,
    schema: str = "backfill",
) -> Status:
    """Let readers read the new table, unless a guard says why not; a dry run tries it and undoes it.

    Raises `Refused` with everything that stands in the way, and any error of the warehouse: readers then read what
    they read before, or the status says otherwise.
    """
    order = Order(by, reason, run_id, tuple(override), dry_run, report, schema)
    return _Flip(session, migration, CUT_OVER, order).carry_out(guards)


def roll_back(
    session: Session,
    migration: Migration,
    guards: Sequence[Guard] = (),
    *,
    by: str,
    reason: str,
    run_id: str,
    override: Sequence[str] = (),
    dry_run: bool = True,
    report: Report,
    schema: str = "backfill",
) -> Status:
    """Let readers read the old table again, as long as it is there."""
    order = Order(by, reason, run_id, tuple(override), dry_run, report, schema)
    return _Flip(session, migration, ROLL_BACK, order).carry_out(guards)


class _Undone(Exception):
    """Ends a transaction that was only tried."""


class _ViewHeld(Exception):
    """Ends a transaction in which the view could not be had for itself in time."""

    def __init__(self, error: SliceBusy) -> None:
        super().__init__()
        self.error = error


class _Flip:
    """One cutover or rollback in one session."""

    def __init__(self, session: Session, migration: Migration, move: Move, order: Order) -> None:
        self._session, self._migration, self._move, self._order = session, migration, move, order
        self._moves = Moves(migration.name, order.schema)
        self._holder = f"run {order.run_id[:8]}"
        self._side: Side = getattr(migration, move.side)
        self._what = f"{migration.name}: readers were not moved"
        self._has_begun = False

    def carry_out(self, guards: Sequence[Guard]) -> Status:
        """Do it, and look again what there is to do where another run moved readers meanwhile."""
        for left in reversed(range(_ATTEMPTS)):
            try:
                return self._carry_out(guards)
            except Overtaken as error:
                now = status(self._session, self._migration, schema=self._order.schema)
                if now.state == self._move.end and now.unfinished is None:
                    return self._already(now)
                # whoever ended what this run had begun wanted the opposite
                if not left or self._has_begun:
                    raise
                self._order.report(f"{error} Looking again.")
        raise AssertionError

    def _carry_out(self, guards: Sequence[Guard]) -> Status:
        """Settle what is unfinished, ask every guard, flip, and read through the view."""
        order, session, move = self._order, self._session, self._move
        order.must_be_told(self._what)
        must_be_one_warehouse(self._migration, self._what)
        if not order.dry_run:
            self._moves.ensure(session)
            settle(session, self._migration, order)
        now = status(session, self._migration, schema=order.schema)
        if now.state == move.end and now.unfinished is None and now.reads == move.side:
            return self._already(now)
        refusals, passed = self._refusals(now, guards)
        if order.dry_run:
            return self._tried(now, refusals, passed)
        if refusals:
            raise Refused(self._what, together(refusals), "Clear these away, or override guards by name with a reason")  # fmt: skip
        view = self._view()
        query = self._query(view)
        intent = self._begin(passed)
        self._has_begun = True
        self._flip(intent, view, query)
        self._verify(intent, view, query)
        done = status(session, self._migration, schema=order.schema)
        order.report(done.told)
        return done

    def _already(self, now: Status) -> Status:
        if not self._order.dry_run:
            # whoever moved them may have ended before looking
            view = self._view()
            if why := wrong(self._session, view, self._query(view), self._side):
                raise WriteFailed(
                    f"{self._migration.name}: readers read {self._move.side} already",
                    f"the view does not show what it should: {why}",
                    "Correct the table, or move the readers back",
                )
        self._order.report(f"Nothing is left to do: {now.told}")
        return now

    def _view(self) -> View:
        return look(self._session, view_of(self._migration))

    def _query(self, view: View) -> str:
        columns = self._session.columns_of(self._side.relation(self._session.spelling)) or {}
        return view.query(self._session.spelling, self._side.table, columns)

    def _refusals(self, now: Status, guards: Sequence[Guard]) -> tuple[list[str], str | None]:
        """Return everything that stands in the way, and what of it is passed by order, with its words."""
        must_know(self._order.override, guards, self._what)
        found: list[str] = []
        # a flip that has not ended is settled before one is begun
        is_settled_first = now.state in (CUT_OVER.going, ROLL_BACK.going)
        if not is_allowed(now.state, self._move.going) and not is_settled_first:
            found.append(f"{self._migration.name} is {now.state}: {words(now.state)}")
        found += self._in_the_way()
        passed: list[str] = []
        for guard in guards:
            name = guard.__name__
            why = asked(guard)
            if why is not None:
                (passed if name in self._order.override else found).append(f"{name}: {why}")
        return found, together(passed) if passed else None

    def _in_the_way(self) -> list[str]:
        """Return what no order passes: a view that cannot be replaced so, a table that is not there or lacks columns."""
        session, side = self._session, self._side
        shown = seen(session, self._migration)
        columns = session.columns_of(side.relation(session.spelling))
        found = [f"there is no table {side.name}"] if columns is None else []
        if shown.view is None:
            return [*found, f"view: {why_not(shown)}"]
        if shown.reads not in ("old", "new"):
            found.append(f"view: {shown.reads}")
        if columns is not None:
            lacking = shown.view.lacks(session.spelling, columns)
            if lacking:
                found.append(f"{side.name} lacks {', '.join(lacking)}, which {shown.view.table.qualified} shows")  # fmt: skip
        return found + [f"rights: {one}" for one in obstacles(session, shown.view, side.table)]

    def _tried(self, now: Status, refusals: list[str], passed: str | None) -> Status:
        """Return what would be done and why it would not; the flip is tried where it can be undone."""
        plan: list[str] = []
        with contextlib.suppress(BackfillError):
            view = self._view()
            columns = self._session.columns_of(self._side.relation(self._session.spelling))
            if columns is not None and not view.lacks(self._session.spelling, columns):
                plan, why = self._plan(view, columns)
                refusals = [*refusals, *([why] if why and not refusals else [])]
        if passed:
            plan = [f"pass by order of {self._order.by}: {passed}", *plan]
        for line in plan:
            self._order.report(f"Would {line}.")
        for why in refusals:
            self._order.report(f"Would be refused: {why}.")
        self._order.report(f"Nothing was changed: {now.told}")
        return replace(now, refusals=tuple(refusals), plan=tuple(plan))

    def _plan(self, view: View, columns: dict[str, str]) -> tuple[list[str], str | None]:
        spelling = self._session.spelling
        query = view.query(spelling, self._side.table, columns)
        plan = [f"run {view.replacement(spelling, query)}", "read through the view and compare it"]
        if retyped := view.retyped(spelling, columns):
            plan.append(f"show columns in the types that readers know: {'; '.join(retyped)}")
        if spelling.view_risk:
            plan.append(f"lose something: {spelling.view_risk}")
        if not spelling.view_rolls_back:
            plan.append(
                "take a risk: this warehouse does not undo a replaced view with a transaction, so that it could not be"
                " tried; it is replaced by one statement between two records, and a run that dies in between leaves"
                " readers wholly on one table, and the next start of these jobs to say on which"
            )
            return plan, None
        try:
            with self._session.transaction():
                self._replace(view, query)
                if why := self._shape_changed(view):
                    return plan, why
                raise _Undone
        except _Undone:
            return plan, None
        except _ViewHeld:
            return [
                *plan,
                "wait for those who read the view now, which is why it was not tried",
            ], None
        except BackfillError as error:
            return plan, f"the warehouse refuses it: {error.why}"

    def _begin(self, passed: str | None) -> Entry:
        """Record what is intended, for everybody to see."""
        order = self._order
        intent = Entry(
            self._migration.name, 0, self._move.going, uuid.uuid4().hex, self._session.clock(),
            order.by, order.reason, order.run_id, passed,
        )  # fmt: skip
        with self._moves.alone(self._session, self._holder):
            return self._moves.enter(self._session, self._move.going, intent)

    def _flip(self, intent: Entry, view: View, query: str) -> None:
        """Let readers read the other table, and record that they do; what fails is given up, and raised."""
        try:
            if self._session.spelling.view_rolls_back:
                self._flip_at_once(intent, view, query)
            else:
                self._flip_in_steps(intent, view, query)
        except (Unreachable, OutcomeUnknown, Overtaken):
            raise  # nobody knows yet, and the next start finds out; or somebody else has settled it
        except BackfillError as error:
            with contextlib.suppress(BackfillError):
                self._settle_mine(intent, f"given up: {error.why}")
            raise

    def _flip_at_once(self, intent: Entry, view: View, query: str) -> None:
        """Flip and record in one transaction, again and again where a reader holds the view for long."""
        for left in reversed(range(_TRIES)):
            try:
                with self._moves.alone(self._session, self._holder):
                    self._must_be_mine(intent)
                    self._replace(view, query)
                    if why := self._shape_changed(view):
                        raise WriteFailed(self._what, why, "Look at both tables' columns")
                    self._moves.enter(self._session, self._move.end, intent)
                return
            except _ViewHeld as held:
                if not left:
                    raise held.error from None
                self._order.report(f"Somebody reads {view.table.qualified}: trying again.")
                time.sleep(_PAUSE_SECONDS)

    def _flip_in_steps(self, intent: Entry, view: View, query: str) -> None:
        """Flip by one statement of its own: whoever moved readers meanwhile is found before it and after it."""
        session, statement = self._session, view.replacement(self._session.spelling, query)
        if held := replacing(session):
            claim = self._moves.claim(session.spelling, self._holder)
            with self._moves.alone(session, self._holder):
                self._must_be_mine(intent)
                held.still_holds(claim)
                session.execute(statement)
                self._moves.enter(session, self._move.end, intent)
            return
        with self._moves.alone(session, self._holder):
            self._must_be_mine(intent)
        session.execute(statement)
        self._settle_mine(intent, None)
        last = self._moves.last(session)
        if last is None or last.state != self._move.end:
            raise self._overtaken(last)

    def _replace(self, view: View, query: str) -> None:
        spelling = self._session.spelling
        if spelling.ddl_patience is not None:
            self._session.execute(spelling.ddl_patience.format(milliseconds=_LOCK_MILLISECONDS))
        try:
            self._session.execute(view.replacement(spelling, query))
        except SliceBusy as error:
            if spelling.ddl_patience is None:
                raise
            raise _ViewHeld(error) from None

    def _shape_changed(self, view: View) -> str | None:
        now = self._session.columns_of(qualified(self._session.spelling, view.table))
        return None if now == view.types else f"the view's columns would be {now} and are {view.types}"  # fmt: skip

    def _must_be_mine(self, intent: Entry) -> None:
        last = self._moves.last(self._session)
        if last is None or last.move_id != intent.move_id or last.state != intent.state:
            raise self._overtaken(last)

    def _overtaken(self, last: Entry | None) -> Overtaken:
        return Overtaken(
            self._what,
            f"run {last.run_id if last else ''} moved them meanwhile",
            "Look at its state with the job migration_status, then launch this again if it is still wanted",
        )

    def _settle_mine(self, intent: Entry, detail: str | None) -> None:
        """Record what came of the move, unless somebody else has done so."""
        with self._moves.alone(self._session, self._holder):
            settled(self._session, self._migration, self._moves, intent, detail, only_own=True)

    def _verify(self, intent: Entry, view: View, query: str) -> None:
        """Read through the view; where that shows anything else, or nothing, flip back and say so."""
        try:
            why = wrong(self._session, view, query, self._side)
        except (Unreachable, OutcomeUnknown):
            raise
        except BackfillError as error:
            why = f"it cannot be read: {error.why}"
        if why is None:
            return
        back = ROLL_BACK if self._move is CUT_OVER else CUT_OVER
        order = replace(self._order, reason=f"the view did not show what it should: {why}")
        undo = _Flip(self._session, self._migration, back, order)
        undo._flip(undo._begin(None), view, undo._query(view))
        raise WriteFailed(
            f"{self._migration.name}: readers read {back.side} again, as before",
            f"after the view had been replaced, {why}",
            "Correct the table, and launch this again",
        )
