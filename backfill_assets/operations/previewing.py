"""What a backfill would do to each partition, found out with a handful of reading statements."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

from backfill_assets.checks.by_slice import Buckets, measured
from backfill_assets.checks.facts import Loads
from backfill_assets.controls.gate import Control, refusals
from backfill_assets.engines import Session
from backfill_assets.engines.protocol import Estimating
from backfill_assets.engines.sql import listed, qualified
from backfill_assets.operations.foreseeing import coming, foreseen
from backfill_assets.slice import Slice, joined
from backfill_assets.table import Table
from backfill_assets.writing import AuditTable, Load, Select
from backfill_assets.writing.audit import key_of
from backfill_assets.writing.fit import resolved

_HISTORY = 200


@dataclass(frozen=True)
class Asked:
    """The controls that such a backfill would meet: what refuses a slice, and what only holds it for a while."""

    refusing: Sequence[Control] = ()
    holding: Sequence[Control] = ()


@dataclass(frozen=True)
class Line:
    """One partition: what is there, what would come, who wrote it last, and what would become of the attempt.

    `source_rows` is None where the asset is no `Select`; `duplicates` counts key values that are there more than once.
    `would_be` is `first load` or `rewrite`, once nothing stands in its way; `verdict` is the same, or `refused: ...` or
    `held: ...` as things are. `spoilt`: it is what would come that is refused, and no reason given would help.
    `closed`: no rows are expected there.
    """

    partition: str
    rows: int
    source_rows: int | None
    duplicates: int | None
    last_loaded: str | None
    by: str | None
    why: str | None
    would_be: str
    verdict: str
    spoilt: bool = False
    closed: bool = False


@dataclass(frozen=True)
class Preview:
    """The lines in partition order, and what the whole would take by the history of the table.

    `source_bytes`: what reading the source of all lines would be billed for, where the warehouse tells beforehand.
    """

    table: str
    lines: tuple[Line, ...]
    seconds: float | None
    cost: float | None
    source_bytes: int | None = None

    def counted(self, what: str) -> int:
        """Return how many partitions would be that (`first load`, `rewrite`), or are `refused` or `held` as things are."""
        if what in ("refused", "held"):
            return sum(line.verdict.startswith(what) for line in self.lines)
        return sum(line.would_be == what for line in self.lines)

    @property
    def gaps(self) -> list[str]:
        """The partitions between the first and the last loaded one that hold no rows, and should."""
        filled = [number for number, line in enumerate(self.lines) if line.rows]
        if not filled:
            return []
        between = self.lines[filled[0] : filled[-1]]
        return [line.partition for line in between if not line.rows and not line.closed]

    def as_json(self) -> dict[str, Any]:
        """Return everything as plain values."""
        return {**asdict(self), "gaps": self.gaps}


def preview(
    session: Session,
    table: Table,
    slices: Sequence[Slice],
    select: Select | None,
    asked: Asked,
    loads: Loads,
    audit: AuditTable,
) -> Preview:
    """Return what rewriting `slices` would do; nothing is written. `loads` are those of `newest_loads`."""
    relation, buckets = qualified(session.spelling, table), Buckets.of(slices)
    there = session.columns_of(relation) is not None
    rows = _counts(session, buckets, relation) if there else [0] * len(slices)
    source = coming(session, slices, select) if select else None
    spoilt = foreseen(session, slices, rows, source, audit) if source else [[] for _ in slices]
    twice = _duplicates(session, buckets, table, relation) if there and table.unique_key else None
    lines = tuple(
        _line(
            slice_,
            loads.get(key_of(slice_)),
            rows[place],
            source[place].rows if source else None,
            twice[place] if twice is not None else None,
            asked,
            spoilt[place],
        )
        for place, slice_ in enumerate(slices)
    )
    seconds, cost = _expected(session, table, audit, lines)
    return Preview(table.qualified, lines, seconds, cost, _bytes(session, slices, select))


def _line(
    slice_: Slice,
    load: Load | None,
    rows: int,
    source_rows: int | None,
    twice: int | None,
    asked: Asked,
    spoilt: list[str],
) -> Line:
    would_be = "rewrite" if rows or load else "first load"
    refused = [*refusals(asked.refusing, slice_), *spoilt]
    held = refusals(asked.holding, slice_)
    verdict = would_be
    if refused:
        verdict = "refused: " + " | ".join([*refused, *held])
    elif held:
        verdict = "held: " + " | ".join(held)
    return Line(
        partition=slice_.name,
        rows=rows,
        source_rows=source_rows,
        duplicates=twice,
        last_loaded=_when(load),
        by=load.launched_by if load else None,
        why=load.reason if load else None,
        would_be=would_be,
        verdict=verdict,
        spoilt=bool(spoilt),
        closed=slice_.table.empty_is_expected(slice_.window),
    )


def _expected(
    session: Session, table: Table, audit: AuditTable, lines: Sequence[Line]
) -> tuple[float | None, float | None]:
    """Return seconds and cost of those whose rows are good: a reason can be given, and a pause ends."""
    seconds, cost = audit.usual(session, table, _HISTORY)
    wanted = sum(not line.spoilt for line in lines)
    return (
        None if seconds is None else round(statistics.median(seconds) * wanted, 3),
        None if not cost else round(statistics.median(cost) * wanted, 6),
    )


def _bytes(session: Session, slices: Sequence[Slice], select: Select | None) -> int | None:
    """Return the bytes that the queries of all slices would be billed for, running none of them."""
    if select is None or not isinstance(session, Estimating):
        return None
    told = [
        session.bytes_of(resolved(session, slice_, select).for_slice(session.spelling, slice_))
        for slice_ in joined(slices)
    ]
    known = [one for one in told if one is not None]
    return sum(known) if len(known) == len(told) else None


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


def _when(load: Load | None) -> str | None:
    moment: datetime | None = load.committed_at if load else None
    return moment.isoformat(timespec="seconds") if moment else None
