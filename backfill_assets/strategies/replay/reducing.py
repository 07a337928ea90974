"""From the decoded events of a slice to its rows: the last event of each key, deletions left out, then the transform."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from backfill_assets.errors import BadRows
from backfill_assets.io_managers.frames import is_arrow
from backfill_assets.strategies.replay.decoding import order_columns, quoted
from backfill_assets.strategies.replay.events import Events
from backfill_assets.strategies.replay.scratch import Scratch

if TYPE_CHECKING:
    pass

Transform = str | Callable[[Any], Any] | None
_GOOD = "__reason IS NULL"


@dataclass(frozen=True)
class Counted:
    """What became of a slice's events: read, the same row told again, and rows that were deleted."""

    events: int
    superseded: int
    deleted: int
    rows: int


def refuse_ambiguous(scratch: Scratch, events: Events, label: str) -> None:
    """Raise where the last event of a key cannot be told: it came in several shards, and nothing orders them."""
    if events.ordering or order_columns(events):
        return
    keys = ", ".join(map(quoted, events.key))
    per = "" if events.within == "table" else "__slice, "
    among = "" if events.within == "table" else " AND __slice IS NOT NULL"
    found = scratch.fetch(
        f"SELECT {keys}, count(DISTINCT __shard) FROM events WHERE {_GOOD}{among} GROUP BY {per}{keys}"
        f" HAVING min(__shard) <> max(__shard) ORDER BY {keys} LIMIT 3"
    )
    if found:
        shown = "; ".join(", ".join(map(str, row[:-1])) for row in found)
        raise BadRows(
            f"{label} was left as it was",
            f"events of one key ({', '.join(events.key)}) came in several shards, so nobody can tell which is the last:"
            f" {shown}",
            "Declare the ordering: the fields by which the last one is told, such as a version or the time of the change",
        )


def keep_last(scratch: Scratch, events: Events) -> None:
    """Make the table `last`: of each key the last event, within its slice or of all that there are."""
    per = "" if events.within == "table" else "__slice, "
    among = "" if events.within == "table" else " AND __slice IS NOT NULL"
    keys = ", ".join(map(quoted, events.key))
    order = [
        *(quoted(name) for name in events.ordering),
        *(name for name, _ in order_columns(events)),
        "__ordinal",
        "__shard",
    ]
    by = ", ".join(f"{name} DESC NULLS LAST" for name in order)
    scratch.fetch(
        f"""CREATE TABLE last AS SELECT events.* EXCLUDE (__reason, __position, __raw) FROM events SEMI JOIN (
  SELECT rowid AS chosen, row_number() OVER (PARTITION BY {per}{keys} ORDER BY {by}) AS place
  FROM events WHERE {_GOOD}{among}) AS ranked ON events.rowid = ranked.chosen AND ranked.place = 1"""
    )


def rows_of(scratch: Scratch, events: Events, place: int, transform: Transform) -> Any:
    """Return the rows of the slice with that number: Arrow, or what a transform of one's own returned."""
    own = ", ".join(map(quoted, events.typed))
    last = f"SELECT {own} FROM last WHERE __slice = {place} AND NOT __gone"
    if transform is None:
        return scratch.arrow(last)
    if isinstance(transform, str):
        return scratch.arrow(f"WITH events AS ({last}) SELECT * FROM (\n{transform}\n) AS made")
    table = scratch.arrow(last)
    return transform(table.to_pandas() if _wants_pandas(transform) else table)


def _wants_pandas(transform: Callable[[Any], Any]) -> bool:
    """Tell whether a transform takes a pandas frame: by its first annotation, and where it has none."""
    import inspect

    (first, *_) = inspect.signature(transform).parameters.values()
    return not is_arrow(first.annotation) and str(first.annotation) not in (
        "pa.Table",
        "pyarrow.Table",
    )


def counted(scratch: Scratch, events: Events, place: int) -> Counted:
    """Return what became of the events of the slice with that number."""
    ((read,),) = scratch.fetch(f"SELECT count(*) FROM events WHERE __slice = {place} AND {_GOOD}")
    ((last, gone),) = scratch.fetch(
        f"SELECT count(*), count(*) FILTER (WHERE __gone) FROM last WHERE __slice = {place}"
    )
    return Counted(read, read - last, gone, last - gone)
