"""One day of two warehouses: the parts of it that differ come by Arrow into a DuckDB file of our own, and are compared there.

A day is cut into parts by the hash of its keys, so that three rows among a million move a few thousand, and memory holds
a part and not a day.
"""

from __future__ import annotations

import contextlib
import tempfile
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

from backfill_assets.engines import Engine, open_engine
from backfill_assets.engines.protocol import Session
from backfill_assets.engines.sql import predicate, quoted
from backfill_assets.slice import Slice
from backfill_assets.strategies.reconcile.columns import Compared
from backfill_assets.strategies.reconcile.differing import Difference, difference
from backfill_assets.strategies.reconcile.marking import Marked

if TYPE_CHECKING:
    import pyarrow as pa

# rows of a part, rows that are fetched at once, and the most parts of a day
_PART, _AT_ONCE, _PARTS = 2_000, 100_000, 10_000
_MEMORY = "512MB"


@contextlib.contextmanager
def scratch() -> Iterator[Engine]:
    """Make a DuckDB of our own, and remove it at the end."""
    with tempfile.TemporaryDirectory(
        prefix="backfill-reconcile-", ignore_cleanup_errors=True
    ) as it:
        yield open_engine(
            f"duckdb:///{quote(str(Path(it) / 'scratch.duckdb'))}?memory_limit={_MEMORY}"
        )


def difference_apart(
    place: Session, old: Marked, new: Marked, slice_: Slice, rows: int, keep: int, measure: str | None
) -> Difference:  # fmt: skip
    """Compare one day of two sessions in a third, `rows` being about how many the larger side has."""
    parts = min(max(1, -(-rows // _PART)), _PARTS)
    differing = _differing_parts(old, new, slice_, parts)
    compared = _held(old.compared)
    tables: list[str] = []
    try:
        for side in (old, new):
            tables.append(name := f"backfill_stage_{uuid.uuid4().hex}")
            _gather(place, name, side, slice_, parts, differing)
        queries = [_query(place, compared, name) for name in tables]
        return difference(place, compared, queries[0], queries[1], keep, measure)
    finally:
        for name in tables:
            place.drop_stage(name)


def _differing_parts(
    old: Marked, new: Marked, slice_: Slice, parts: int
) -> list[tuple[int, int]] | None:
    """Return the parts that differ, each with its rows; None for all of the day, where it is one part."""
    if parts == 1:
        return None
    sides: list[dict[int, tuple[int, str]]] = []
    for side in (old, new):
        found = side.session.fetch(
            f"SELECT part, count(*), {side.spelling.hash_sum.format(hash='row_hash')} FROM"
            f" (SELECT {_part(side, parts)} AS part, {side.hash()} AS row_hash FROM {side.relation}"
            f" WHERE {predicate(side.spelling, side.cut(slice_))}) AS hashed GROUP BY part"
        )
        sides.append({int(part): (int(rows), str(total)) for part, rows, total in found})
    mine, theirs = sides
    nothing = (0, "")
    return [
        (part, max(mine.get(part, nothing)[0], theirs.get(part, nothing)[0]))
        for part in sorted(mine.keys() | theirs.keys())
        if mine.get(part) != theirs.get(part)
    ]


def _part(side: Marked, parts: int) -> str:
    number = side.hash(key_only=True)
    return side.spelling.modulo.format(number=number, by=parts)


def _gather(
    place: Session, name: str, side: Marked, slice_: Slice, parts: int, differing: list[tuple[int, int]] | None
) -> None:  # fmt: skip
    """Bring the rows of some parts of a day of one side into the table `name` of `place`."""
    spelling = side.spelling
    cut = predicate(spelling, side.cut(slice_))
    sent = ", ".join(
        f"{value.sent} AS {quoted(spelling, f'v{n}')}" for n, value in enumerate(side.values())
    )
    base = f"SELECT {sent} FROM {side.relation} WHERE {cut}"
    conditions = [""]
    if differing is not None:
        one_of = _part(side, parts)
        conditions = [
            f" AND {one_of} IN ({', '.join(map(str, some))})" for some in _some(differing)
        ]
        conditions = conditions or [" AND 1 = 0"]
    relation = None
    for condition in conditions:
        rows = side.session.fetch_arrow(base + condition)
        stage_name = f"backfill_stage_{uuid.uuid4().hex}"
        stage = place.stage_arrow(stage_name, _named(rows))
        try:
            query = f"SELECT {_typed(place, side.compared)} FROM {stage}"
            if relation is None:
                relation = place.stage_select(name, query)
            else:
                place.execute(f"INSERT INTO {relation} {query}")
        finally:
            place.drop_stage(stage_name)


def _some(differing: Sequence[tuple[int, int]]) -> Iterator[list[int]]:
    """Yield parts of so many rows together as are fetched at once."""
    some, rows = list[int](), 0
    for part, count in differing:
        if some and rows + count > _AT_ONCE:
            yield some
            some, rows = [], 0
        some.append(part)
        rows += count
    if some:
        yield some


def _named(rows: pa.Table) -> pa.Table:
    return rows.rename_columns([f"v{n}" for n in range(rows.num_columns)])


def _typed(place: Session, compared: Compared) -> str:
    kinds = [
        place.spelling.wide["float"] if column.family == "float" else place.spelling.text_type
        for column in compared.columns
    ]
    return ", ".join(f"CAST(v{n} AS {kind}) AS v{n}" for n, kind in enumerate(kinds))


def _held(compared: Compared) -> Compared:
    return replace(compared, one_place=True)


def _query(place: Session, compared: Compared, name: str) -> str:
    held = [
        f"{column.held.format(value=f'v{n}')} AS v{n}" for n, column in enumerate(compared.columns)
    ]
    return f"SELECT {', '.join(held)} FROM {quoted(place.spelling, name)}"
