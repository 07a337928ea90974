"""What a backfill would do to each partition, found out with a handful of reading statements."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

from backfill_assets.checks.by_slice import Buckets, measured
from backfill_assets.checks.facts import Loads, key_of, newest_loads
from backfill_assets.controls.gate import Control, refusals
from backfill_assets.engines import Session
from backfill_assets.engines.sql import listed, qualified
from backfill_assets.operations.source_rows import rows_of_select
from backfill_assets.slice import Slice
from backfill_assets.table import Table
from backfill_assets.writing import AuditTable, Load, Select

__all__ = ["Line", "Loads", "Preview", "key_of", "newest_loads", "preview"]

_HISTORY = 200


@dataclass(frozen=True)
class Line:
    """One partition: what is there, what would come, who wrote it last, and what would become of the attempt.

    `source_rows` is None where the asset is no `Select`; `duplicates` counts key values that are there more than once.
    """

    partition: str
    rows: int
    source_rows: int | None
    duplicates: int | None
    last_loaded: str | None
    by: str | None
    why: str | None
    verdict: str


@dataclass(frozen=True)
class Preview:
    """The lines in partition order, and what the whole would take by the history of the table."""

    table: str
    lines: tuple[Line, ...]
    seconds: float | None
    cost: float | None

    def counted(self, verdict: str) -> int:
        """Return how many partitions have a verdict that begins so."""
        return sum(line.verdict.startswith(verdict) for line in self.lines)

    @property
    def gaps(self) -> list[str]:
        """The partitions between the first and the last loaded one that hold no rows."""
        filled = [number for number, line in enumerate(self.lines) if line.rows]
        if not filled:
            return []
        return [line.partition for line in self.lines[filled[0] : filled[-1]] if not line.rows]

    def as_json(self) -> dict[str, Any]:
        """Return everything as plain values."""
        return {**asdict(self), "gaps": self.gaps}


def preview(
    session: Session,
    table: Table,
    slices: Sequence[Slice],
    select: Select | None,
    controls: Sequence[Control],
    loads: Loads,
    audit: AuditTable,
) -> Preview:
    """Return what rewriting `slices` would do; nothing is written. `loads` are those of `newest_loads`."""
    spelling, buckets = session.spelling, Buckets.of(slices)
    relation = qualified(spelling, table)
    there = session.columns_of(relation) is not None
    rows = _counts(session, buckets, relation) if there else [0] * len(slices)
    source = rows_of_select(session, table, slices, select) if select else None
    twice = _duplicates(session, buckets, table, relation) if there and table.unique_key else None
    lines = [
        Line(
            partition=slice_.name,
            rows=rows[number],
            source_rows=source[number] if source is not None else None,
            duplicates=twice[number] if twice is not None else None,
            last_loaded=_when(load),
            by=load.launched_by if load else None,
            why=load.reason if load else None,
            verdict=_verdict(refusals(controls, slice_), rows[number], load),
        )
        for number, slice_ in enumerate(slices)
        for load in [loads.get(key_of(slice_))]
    ]
    seconds, cost = audit.usual(session, table, _HISTORY)
    wanted = sum(not line.verdict.startswith("refused") for line in lines)
    return Preview(
        table.qualified,
        tuple(lines),
        None if seconds is None else round(statistics.median(seconds) * wanted, 3),
        None if not cost else round(statistics.median(cost) * wanted, 6),
    )


def _counts(session: Session, buckets: Buckets, relation: str) -> list[int]:
    return [int(found["n"]) for found in measured(session, buckets, relation, {"n": "count(*)"})]


def _duplicates(session: Session, buckets: Buckets, table: Table, relation: str) -> list[int]:
    spelling = session.spelling
    cutting = [table.slice_column.name] if table.slice_column else []
    keys: list[str] = [*cutting, *table.dimensions, *table.unique_key]
    columns = listed(spelling, dict.fromkeys(keys))
    twice = (
        f"(SELECT {columns} FROM {relation} WHERE {buckets.condition(spelling)}"
        f" GROUP BY {columns} HAVING count(*) > 1) AS twice"
    )
    return _counts(session, buckets, twice)


def _verdict(refused: list[str], rows: int, load: Load | None) -> str:
    if refused:
        return "refused: " + " | ".join(refused)
    return "rewrite" if rows or load else "first load"


def _when(load: Load | None) -> str | None:
    moment: datetime | None = load.committed_at if load else None
    return moment.isoformat(timespec="seconds") if moment else None
