"""Events that cannot be read: told, or put aside into a table with where they lie, why, and their raw bytes."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import TYPE_CHECKING

from backfill_assets.engines.protocol import Session, replacing
from backfill_assets.engines.sql import create_schema, create_table, qualified, quoted
from backfill_assets.errors import BadRows
from backfill_assets.strategies.replay.scratch import Scratch
from backfill_assets.strategies.replay.source import EventSource, Reading
from backfill_assets.table import Table
from backfill_assets.writing.making import make
from backfill_assets.writing.run import Run

if TYPE_CHECKING:
    import pyarrow as pa

QUARANTINE = "replay_quarantine"
_COLUMNS = ("table_name", "topic", "shard", "position", "at", "reason", "raw_base64", "run_id")
_SHOWN = 3


def poison(scratch: Scratch) -> int:
    """Return how many events could not be read."""
    return int(scratch.fetch("SELECT count(*) FROM events WHERE __reason IS NOT NULL")[0][0])


def refuse_poison(scratch: Scratch, source: EventSource, reading: Reading, label: str) -> None:
    """Raise for events that could not be read: how many, where the first are, and why."""
    total = poison(scratch)
    if not total:
        return
    found = scratch.fetch(
        f"SELECT __shard, __position, __reason FROM events WHERE __reason IS NOT NULL ORDER BY 1, __ordinal LIMIT {_SHOWN}"
    )
    told = "; ".join(
        f"{source.shard_word} {reading.shards[n].name} offset {at}: {why}" for n, at, why in found
    )
    raise BadRows(
        f"{label} was left as it was",
        f"{total} events of {source.name} cannot be read: {told}{'; ...' if total > len(found) else ''}",
        "Correct the declaration of the events, or put such events aside with poison='quarantine'",
    )


def put_aside(
    session: Session, scratch: Scratch, source: EventSource, reading: Reading, target: Table, run: Run, schema: str
) -> int:  # fmt: skip
    """Add the events that could not be read to `<schema>.replay_quarantine`, those that are there already left out."""
    total = poison(scratch)
    if not total:
        return 0
    spelling = session.spelling
    place = Table(QUARANTINE, schema=schema)
    name, text = qualified(spelling, place), spelling.text_type
    types: Mapping[str, str] = {c: spelling.log_types.get("datetime", _stamp(spelling.dialect)) if c == "at" else text for c in _COLUMNS}  # fmt: skip
    listed = ", ".join(f"{quoted(spelling, c)} {types[c]}" for c in _COLUMNS)
    make(
        session,
        f"events that cannot be read are not put aside, since there is no table {place.qualified}",
        [create_table(spelling, name, listed)],
        schema=create_schema(spelling, schema),
    )
    stage = session.stage_arrow("quarantined", _rows(scratch, source, reading, target, run))
    own = ", ".join(quoted(spelling, c) for c in _COLUMNS)
    same = " AND ".join(
        f"q.{quoted(spelling, c)} = s.{quoted(spelling, c)}"
        for c in ("table_name", "topic", "shard", "position")
    )
    query = f"SELECT {', '.join(f's.{quoted(spelling, c)}' for c in _COLUMNS)} FROM {stage} AS s WHERE NOT EXISTS (SELECT 1 FROM {name} AS q WHERE {same})"
    try:
        if replacing(session):
            session.execute(f"INSERT INTO {name} ({own}) {query}")
        else:
            with session.transaction():
                session.execute(f"INSERT INTO {name} ({own}) {query}")
    finally:
        session.drop_stage("quarantined")
    return total


def _rows(
    scratch: Scratch, source: EventSource, reading: Reading, target: Table, run: Run
) -> pa.Table:
    import pyarrow as pa

    found = scratch.fetch(
        "SELECT __shard, __position, __at, __reason, __raw FROM events WHERE __reason IS NOT NULL"
    )
    shards = [shard.name for shard in reading.shards]
    columns = {
        "table_name": [target.qualified] * len(found),
        "topic": [source.name] * len(found),
        "shard": [shards[row[0]] for row in found],
        "position": [row[1] for row in found],
        "at": [row[2] for row in found],
        "reason": [row[3] for row in found],
        "raw_base64": [
            None if row[4] is None else base64.b64encode(row[4]).decode() for row in found
        ],
        "run_id": [run.run_id] * len(found),
    }
    return pa.table(
        {
            name: pa.array(values, pa.timestamp("us", "UTC") if name == "at" else pa.string())
            for name, values in columns.items()
        }
    )


def _stamp(dialect: str) -> str:
    from sqlglot import exp

    return exp.DataType.build("timestamptz").sql(dialect=dialect)
