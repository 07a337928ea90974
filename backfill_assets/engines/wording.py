"""What the engines' errors have in common: how a rule says one, and how much of a driver's words is shown."""

from __future__ import annotations

from backfill_assets.errors import BackfillError, OutcomeUnknown

# what becomes of a driver's error: its class, what happened, what to do now
Rule = tuple[type[BackfillError], str, str]
AS_IT_WAS = ", and the slice is as it was"
# why a claim on what is no table would not hold, and what to do about it
BENEATH = "writers of the table beneath it would not know of this one"
NAME_IT = "Name the table beneath it"
_LONGEST = 300


def shortened(words: str) -> str:
    """Return a driver's words on one line, of bearable length."""
    words = " ".join(words.split())
    return words if len(words) <= _LONGEST else f"{words[:_LONGEST]}..."


def unknown_outcome(error: BackfillError) -> OutcomeUnknown:
    """Return what to raise where `error` took the connection away while it was to commit."""
    return OutcomeUnknown(
        "whether the slice was replaced is not known, though it is whole, old or new",
        f"the connection broke during COMMIT ({error.why})",
        "Launch this partition again: replacing it twice does no harm",
    )
