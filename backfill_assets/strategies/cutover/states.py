"""The life of a migration as one literal table: its states, and which of them may follow which."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from backfill_assets.errors import Refused

State = Literal["dual_writing", "cutting_over", "cut_over", "rolling_back", "retiring", "retired"]
STATES: tuple[State, ...] = get_args(State)
FIRST: State = "dual_writing"

ALLOWED: dict[State, tuple[State, ...]] = {
    "dual_writing": ("cutting_over",),
    "cutting_over": ("cut_over", "dual_writing"),  # done, given up
    "cut_over": ("rolling_back", "retiring"),
    "rolling_back": ("dual_writing", "cut_over"),  # done, given up
    "retiring": ("retired", "cut_over"),  # done, given up
    "retired": ("retiring",),  # somebody made the old table again
}

_WORDS: dict[State, str] = {
    "dual_writing": "both paths write, and readers read the old table",
    "cutting_over": "a cutover has begun and has not ended",
    "cut_over": "readers read the new table, and the old one is still there",
    "rolling_back": "a rollback has begun and has not ended",
    "retiring": "the removal of the old table has begun and has not ended",
    "retired": "readers read the new table, and the old one is gone",
}


class Overtaken(Refused):
    """Somebody else moved readers meanwhile."""


@dataclass(frozen=True)
class Move:
    """What a job does: from `start` by way of `going` to `end`, where readers read the table of the side `side`."""

    name: str
    start: State
    going: State
    end: State
    side: Literal["old", "new"]


CUT_OVER = Move("cut_over", "dual_writing", "cutting_over", "cut_over", "new")
ROLL_BACK = Move("roll_back", "cut_over", "rolling_back", "dual_writing", "old")
RETIRE = Move("retire", "cut_over", "retiring", "retired", "new")
UNDERWAY: dict[State, Move] = {move.going: move for move in (CUT_OVER, ROLL_BACK, RETIRE)}


def is_allowed(before: State, after: State) -> bool:
    """Tell whether a migration may go from one state to the other in one step."""
    return after in ALLOWED[before]


def must_be_allowed(migration: str, before: State, after: State) -> None:
    """Raise `Overtaken` unless `after` may follow `before`."""
    if not is_allowed(before, after):
        may = ", ".join(ALLOWED[before]) or "nothing"
        raise Overtaken(
            f"the migration {migration} does not go from {before} to {after}, and nothing was changed",
            f"{words(before)}, and only {may} may follow that",
            "Look at its state with the job migration_status",
        )


def words(state: State) -> str:
    """Return what a state means to whoever reads the tables."""
    return _WORDS[state]
