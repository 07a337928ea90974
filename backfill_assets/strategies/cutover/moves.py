"""`migration_moves`: one row per state that a migration entered, when, by whom and why; its newest row is the state.

Rows are only ever added, each one in a transaction of its own or together with what it tells, under a claim.
"""

from __future__ import annotations

import contextlib
from collections.abc import Generator
from dataclasses import dataclass, fields
from datetime import datetime

from backfill_assets.engines.protocol import Claim, Session, Spelling
from backfill_assets.engines.sql import (
    create_schema,
    listed,
    qualified,
    same_text,
)
from backfill_assets.strategies.cutover.states import FIRST, State, must_be_allowed
from backfill_assets.table import Table
from backfill_assets.writing.audit import aware, log_literal, log_table
from backfill_assets.writing.claims import alone
from backfill_assets.writing.making import make

MOVES = "migration_moves"
# the column of the audit whose type each column has
_COLUMNS = {
    "migration": "partition_key",
    "number": "rows_before",
    "state": "outcome",
    "move_id": "run_id",
    "at": "committed_at",
    "launched_by": "launched_by",
    "reason": "detail",
    "run_id": "run_id",
    "overridden": "detail",
    "detail": "detail",
}


@dataclass(frozen=True)
class Entry:
    """A state that a migration entered: the `number`th, `at` (aware, UTC, the warehouse's clock) by `move_id`.

    `overridden`: the guards that were passed by order, with what they said; `detail`: what came of it, or why not.
    """

    migration: str
    number: int
    state: State
    move_id: str
    at: datetime
    launched_by: str | None
    reason: str | None
    run_id: str | None
    overridden: str | None = None
    detail: str | None = None


@dataclass(frozen=True)
class Moves:
    """The log of one migration in the warehouse of its view."""

    migration: str
    schema: str = "backfill"

    @property
    def table(self) -> Table:
        """The table of all migrations' moves."""
        return Table(MOVES, schema=self.schema)

    def definition(self, spelling: Spelling) -> list[str]:
        """Return the statements that make the table, for whoever may run them."""
        return [create_schema(spelling, self.schema), log_table(spelling, self.table, _COLUMNS)]

    def ensure(self, session: Session) -> None:
        """Make the table if it is not there; say the statements to run where the role may not."""
        if not self._is_there(session):
            schema, *others = self.definition(session.spelling)
            what = f"there is no table {self.table.qualified} to record the move in, and it cannot be made"
            make(session, what, others, schema=schema)

    def entries(self, session: Session) -> list[Entry]:
        """Return every state that the migration entered, oldest first."""
        spelling = session.spelling
        if not self._is_there(session):
            return []
        found = session.fetch(
            f"SELECT {listed(spelling, _COLUMNS)} FROM {qualified(spelling, self.table)}"
            f" WHERE {same_text(spelling, 'migration', self.migration)}"
        )
        entries = [Entry(*map(aware, row)) for row in found]
        return sorted(entries, key=lambda entry: (entry.number, entry.at))

    def last(self, session: Session) -> Entry | None:
        """Return the state that the migration entered last; None where it never moved."""
        return next(reversed(self.entries(session)), None)

    def enter(self, session: Session, state: State, move: Entry, **more: str | None) -> Entry:
        """Add the row of a state that may follow the last one; belongs under the claim. `move` says who and why."""
        spelling, last = session.spelling, self.last(session)
        must_be_allowed(self.migration, last.state if last else FIRST, state)
        told = {name: getattr(move, name) for name in ("launched_by", "reason", "run_id", "overridden", "detail")}  # fmt: skip
        entry = Entry(
            migration=self.migration,
            number=(last.number if last else 0) + 1,
            state=state,
            move_id=move.move_id,
            at=session.clock(),
            **(told | more),
        )
        values = ", ".join(log_literal(spelling, getattr(entry, one.name)) for one in fields(Entry))
        session.execute(
            f"INSERT INTO {qualified(spelling, self.table)} ({listed(spelling, _COLUMNS)})"
            f" {spelling.one_row.format(values=values)}"
        )
        return entry

    def claim(self, spelling: Spelling, holder: str) -> Claim:
        """Return the claim that a move holds: on the log, for engines grant none on a view, and moves are rare."""
        return Claim(qualified(spelling, self.table), None, f"the view of {self.migration}", holder)

    @contextlib.contextmanager
    def alone(self, session: Session, holder: str) -> Generator[None, None, None]:
        """Be the only one who moves readers until the end of the body: all or nothing, where the engine can."""
        claim = self.claim(session.spelling, holder)
        session.prepare(claim)
        with alone(session, claim):
            yield

    def _is_there(self, session: Session) -> bool:
        return session.columns_of(qualified(session.spelling, self.table)) is not None
