"""From the decoded events of a slice to its rows: the last event of each key, deletions left out, then the transform."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from backfill_assets.engines.drivers import driver
from backfill_assets.errors import BadRows, DeclarationError
from backfill_assets.io_managers.frames import is_arrow
from backfill_assets.strategies.replay.decoding import order_columns, quoted
from backfill_assets.strategies.replay.events import Events
from backfill_assets.strategies.replay.scratch import Scratch

Transform = str | Callable[[Any], Any] | None
_GOOD = "__reason IS NULL"


def refuse_ambiguous(scratch: Scratch, events: Events, label: str) -> None:
    """Raise where the last event of a key cannot be told: it came in several shards, and nothing orders the newest of them."""
    keys, (of_row, good) = ", ".join(map(quoted, events.key)), _row(events)
    row = ", ".join(of_row)
    several = f"SELECT {row} FROM events WHERE {good} GROUP BY {row} HAVING min(__shard) <> max(__shard)"  # fmt: skip
    same = " AND ".join(f"e.{name} = s.{name}" for name in of_row)
    order = ", ".join(f"{name} DESC NULLS LAST" for name in _order(events)) or "1"
    own = ", ".join(map(quoted, events.typed))
    found = scratch.fetch(
        f"""SELECT {keys} FROM (
  SELECT e.*, rank() OVER (PARTITION BY {row} ORDER BY {order}) AS __place
  FROM events AS e SEMI JOIN ({several}) AS s ON {same} WHERE {good}) AS ranked
WHERE __place = 1 GROUP BY {row}
HAVING min(__shard) <> max(__shard) AND count(DISTINCT row(__gone, {own})) > 1 ORDER BY {keys} LIMIT 3"""
    )
    if found:
        shown = "; ".join(", ".join(map(str, row)) for row in found)
        raise BadRows(
            f"{label} was left as it was",
            f"events of one key ({', '.join(events.key)}) came in several shards, and nobody can tell which is the last:"
            f" {shown}",
            "Declare the ordering: the fields by which the last one is told, such as a version or the time of the change",
        )


def _row(events: Events) -> tuple[list[str], str]:
    """Return the columns that say which row an event is of, and the condition of events that are of any."""
    keys = list(map(quoted, events.key))
    if events.within == "table":
        return keys, _GOOD
    return ["__slice", *keys], f"{_GOOD} AND __slice IS NOT NULL"


def _order(events: Events) -> list[str]:
    """Return what tells the last event of a key: the place in a database's log, then the declared fields."""
    return [*(name for name, _ in order_columns(events)), *map(quoted, events.ordering)]


def must_be_sql(scratch: Scratch, events: Events, transform: Transform, label: str) -> None:
    """Raise before anything is read where SQL of the declaration does not fit the fields."""
    duckdb = driver("duckdb", "DuckDB", "duckdb")
    own = ", ".join(map(quoted, events.typed))
    asked: dict[str, str] = {}
    if events.deleted:
        asked["deleted"] = f"SELECT ({events.deleted}) FROM events"
    if isinstance(transform, str):
        asked["transform"] = f"WITH events AS (SELECT {own} FROM events) SELECT * FROM (\n{transform}\n) AS made LIMIT 0"  # fmt: skip
    for what, sql in asked.items():
        try:
            scratch.fetch(sql)
        except duckdb.Error as error:
            raise DeclarationError(
                f"{label} was left as it was",
                f"the SQL of {what} does not fit the events' fields ({error})",
                f"Correct {what}",
            ) from error


def keep_last(scratch: Scratch, events: Events) -> None:
    """Make the table `last`: of each key the last event, within its slice or of all that there are."""
    row, good = _row(events)
    by = ", ".join(f"{name} DESC NULLS LAST" for name in (*_order(events), "__ordinal", "__shard"))
    scratch.fetch(
        f"""CREATE TABLE last AS SELECT events.* EXCLUDE (__reason, __position, __raw) FROM events SEMI JOIN (
  SELECT rowid AS chosen, row_number() OVER (PARTITION BY {", ".join(row)} ORDER BY {by}) AS place
  FROM events WHERE {good}) AS ranked ON events.rowid = ranked.chosen AND ranked.place = 1"""
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
    return transform(
        table.to_pandas(integer_object_nulls=True) if _wants_pandas(transform) else table
    )


def _wants_pandas(transform: Callable[[Any], Any]) -> bool:
    """Tell whether a transform takes a pandas frame: by its first annotation, and where it has none."""
    import inspect

    (first, *_) = inspect.signature(transform).parameters.values()
    return not is_arrow(first.annotation) and str(first.annotation) not in (
        "pa.Table",
        "pyarrow.Table",
    )


def counted(scratch: Scratch, place: int) -> dict[str, int]:
    """Return what became of the events of the slice with that number: read, told again, and those of deleted rows."""
    ((read,),) = scratch.fetch(f"SELECT count(*) FROM events WHERE __slice = {place} AND {_GOOD}")
    ((last, gone),) = scratch.fetch(
        f"SELECT count(*), count(*) FILTER (WHERE __gone) FROM last WHERE __slice = {place}"
    )
    return {"events": read, "events_superseded": read - last, "rows_deleted": gone}
