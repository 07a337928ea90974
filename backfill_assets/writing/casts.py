"""Casts on the way from the stage into the table: refused where a value would come back as another one."""

from __future__ import annotations

from backfill_assets.engines.protocol import Session
from backfill_assets.engines.sql import first, quoted
from backfill_assets.errors import SchemaMismatch
from backfill_assets.slice import Slice
from backfill_assets.writing.fit import Fit, family

_SAMPLE = 5
# such a type spells a text its own way, so that it comes back equal and yet not the same
_RESPELLED = ("json", "jsonb", "uuid")


def refuse_lossy(session: Session, slice_: Slice, found: Fit, stage: str) -> None:
    """Raise when a value would not survive the way into its column's type and back."""
    changed = {name: _changes(session, name, found) for name in found.casts}
    if not changed:
        return
    counted = ", ".join(
        f"count(CASE WHEN {condition} THEN 1 END)" for condition in changed.values()
    )
    try:
        counts = session.fetch(f"SELECT {counted} FROM {stage}")[0]
    except SchemaMismatch as error:
        raise _unfit(session, slice_, found, stage, changed) or error from error
    for (name, condition), count in zip(changed.items(), counts, strict=True):
        if count:
            was, will = found.casts[name]
            source = quoted(session.spelling, found.sources[name])
            rest = f"{source} FROM {stage} WHERE {condition}"
            sample = session.fetch(first(session.spelling, _SAMPLE, rest))
            raise _refusal(
                slice_,
                f"{count} values of column {name!r} would change from {was} to {will},"
                f" for example {', '.join(str(row[0]) for row in sample)}",
            )


def _changes(session: Session, name: str, found: Fit) -> str:
    """Return the condition that holds where the cast of a column changes the value."""
    spelling, (was, will) = session.spelling, found.casts[name]
    source = quoted(spelling, found.sources[name])
    there = spelling.try_cast.format(value=source, type=will)
    if family(was, spelling) == "text" and family(will, spelling) in _RESPELLED:
        return f"{there} IS NULL AND {source} IS NOT NULL"
    differs = spelling.text_differs if family(was, spelling) == "text" else spelling.differs
    return differs.format(a=f"CAST({there} AS {was})", b=source)


def _unfit(
    session: Session, slice_: Slice, found: Fit, stage: str, changed: dict[str, str]
) -> SchemaMismatch | None:
    """Return which column's cast fails, for engines whose casts fail instead of giving NULL."""
    for name, condition in changed.items():
        try:
            session.fetch(f"SELECT count(CASE WHEN {condition} THEN 1 END) FROM {stage}")
        except SchemaMismatch as error:
            was, will = found.casts[name]
            return _refusal(
                slice_, f"values of column {name!r} do not fit from {was} into {will} ({error.why})"
            )
    return None


def _refusal(slice_: Slice, why: str) -> SchemaMismatch:
    return SchemaMismatch(
        f"{slice_.label} was left as it was",
        why,
        "Convert them in the transform, or give the column a type that holds them",
    )
