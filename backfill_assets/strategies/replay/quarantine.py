"""Events that cannot be read: told, or put aside into a table with where they lie, why, and their raw bytes."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING

from backfill_assets.engines.protocol import Claim, Session
from backfill_assets.engines.sql import create_schema, create_table, qualified, quoted
from backfill_assets.errors import BadRows
from backfill_assets.strategies.replay.decoding import literal
from backfill_assets.strategies.replay.scratch import Scratch
from backfill_assets.strategies.replay.source import EventSource, Reading
from backfill_assets.table import Table
from backfill_assets.writing.audit import log_type
from backfill_assets.writing.claims import alone
from backfill_assets.writing.making import make
from backfill_assets.writing.run import Run

if TYPE_CHECKING:
    import pyarrow as pa

QUARANTINE = "replay_quarantine"
_COLUMNS = ("table_name", "topic", "shard", "position", "at", "reason", "raw_base64", "run_id")
_SHOWN = 3
_AT_ONCE = 5_000  # of the events that are put aside


def poison(scratch: Scratch) -> int:
    """Return how many events could not be read."""
    return int(scratch.fetch("SELECT count(*) FROM events WHERE __reason IS NOT NULL")[0][0])


def poisoned(
    total: int, scratch: Scratch, source: EventSource, reading: Reading, label: str
) -> BadRows:
    """Return the refusal of events that could not be read: how many, where the first are, and why."""
    found = scratch.fetch(
        f"SELECT __shard, __position, __reason FROM events WHERE __reason IS NOT NULL ORDER BY 1, __ordinal LIMIT {_SHOWN}"
    )
    told = "; ".join(
        f"{source.shard_word} {reading.shards[n].name} offset {at}: {why}" for n, at, why in found
    )
    return BadRows(
        f"{label} was left as it was",
        f"{total} events of {source.name} cannot be read: {told}{'; ...' if total > len(found) else ''}",
        "Correct the declaration of the events, or put such events aside with poison='quarantine'",
    )


def put_aside(
    total: int, session: Session, scratch: Scratch, source: EventSource, reading: Reading, target: Table, run: Run, schema: str
) -> None:  # fmt: skip
    """Add the events that could not be read to `<schema>.replay_quarantine`, those that are there already left out."""
    spelling = session.spelling
    place = Table(QUARANTINE, schema=schema)
    name, text = qualified(spelling, place), spelling.text_type
    types = dict.fromkeys(_COLUMNS, text)
    types["reason"] = types["raw_base64"] = log_type(spelling, "detail")
    types["at"] = log_type(spelling, "committed_at")
    listed = ", ".join(f"{quoted(spelling, c)} {types[c]}" for c in _COLUMNS)
    make(
        session,
        f"events that cannot be read are not put aside, since there is no table {place.qualified}",
        [create_table(spelling, name, listed)],
        schema=create_schema(spelling, schema),
    )
    claim = Claim(name, None, place.qualified, f"run {run.run_id[:8]}", run.backfill_id)
    for first in range(0, total, _AT_ONCE):
        _add(session, name, _rows(scratch, source, reading, target, run, first), claim)


def _add(session: Session, name: str, rows: pa.Table, claim: Claim) -> None:
    """Add rows to the quarantine, whose only writer this is meanwhile."""
    spelling = session.spelling
    session.prepare(claim)
    stage_name = f"backfill_stage_{uuid.uuid4().hex}"
    stage = session.stage_arrow(stage_name, rows)
    own = ", ".join(quoted(spelling, c) for c in _COLUMNS)
    same = " AND ".join(
        f"q.{quoted(spelling, c)} = s.{quoted(spelling, c)}"
        for c in ("table_name", "topic", "shard", "position")
    )
    of_stage = ", ".join(f"s.{quoted(spelling, c)}" for c in _COLUMNS)
    insert = (
        f"INSERT INTO {name} ({own}) SELECT {of_stage} FROM {stage} AS s"
        f" WHERE NOT EXISTS (SELECT 1 FROM {name} AS q WHERE {same})"
    )
    try:
        with alone(session, claim):
            session.execute(insert)
    finally:
        session.drop_stage(stage_name)


def _rows(
    scratch: Scratch, source: EventSource, reading: Reading, target: Table, run: Run, first: int
) -> pa.Table:
    """Return the events that could not be read, from the one with number `first` on, as many as are added at once."""
    shards = " ".join(
        f"WHEN {place} THEN {literal(shard.name)}" for place, shard in enumerate(reading.shards)
    )
    return scratch.arrow(
        f"SELECT {literal(target.qualified)} AS table_name, {literal(source.name)} AS topic,"
        f" CASE __shard {shards} END AS shard, __position AS position, __at AS at, __reason AS reason,"
        f" to_base64(__raw) AS raw_base64, {literal(run.run_id)} AS run_id"
        f" FROM events WHERE __reason IS NOT NULL ORDER BY __shard, __ordinal LIMIT {_AT_ONCE} OFFSET {first}"
    )
