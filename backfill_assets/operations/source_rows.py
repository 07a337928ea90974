"""How many rows the source has for each slice, and how many of them came late: a statement for all slices together."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

import dagster as dg

from backfill_assets.checks.by_slice import Buckets, measured
from backfill_assets.checks.late import is_late
from backfill_assets.engines import Session
from backfill_assets.expectations import Source
from backfill_assets.slice import Slice
from backfill_assets.table import Table
from backfill_assets.writing import Select
from backfill_assets.writing.fit import resolved
from backfill_assets.writing.reference import reference


def select_of(asset: dg.AssetsDefinition) -> Select | None:
    """Return the query of an asset that is one: a function without inputs whose annotation says so."""
    function = getattr(getattr(asset.op, "compute_fn", None), "decorated_fn", None)
    if function is None or function.__code__.co_argcount:
        return None
    if function.__annotations__.get("return") not in (Select, "Select"):
        return None
    found = function()
    return found if isinstance(found, Select) else None


def rows_of_select(
    session: Session, table: Table, slices: Sequence[Slice], select: Select
) -> list[int]:
    """Return how many rows the query yields for each slice."""
    buckets = Buckets.of(slices)
    return _counts(session, buckets, relation_of(session, table, buckets, select))


def relation_of(session: Session, table: Table, buckets: Buckets, select: Select) -> str:
    """Return the rows of a query over all slices and regions at once: they are told apart by the rows themselves."""
    plain = Slice(Table(table.name, table.slice_column, schema=table.schema), buckets.whole)
    query = resolved(session, plain, select).for_slice(session.spelling, plain)
    return f"(\n{query}\n) AS source_rows"


def rows_of_source(
    session: Session, table: Table, slices: Sequence[Slice], source: Source
) -> list[int]:
    """Return how many rows the declared source has for each slice."""
    found = reference(session, table, source)
    return _counts(session, Buckets.of(found.slices(slices)), found.relation)


def late_rows(
    session: Session,
    table: Table,
    slices: Sequence[Slice],
    source: Source,
    since: Sequence[datetime | None],
) -> list[int | None]:
    """Return how many rows of each slice reached the source at or after `since`; None where that is None."""
    if source.ingested_at is None:
        return [None] * len(slices)
    found = reference(session, table, source)
    buckets = Buckets.of(found.slices(slices))
    came_late = is_late(session.spelling, buckets, source.ingested_at, since)
    late = f"count(CASE WHEN {came_late} THEN 1 END)"
    counts = measured(session, buckets, found.relation, {"n": late})
    return [
        None if moment is None else int(count["n"])
        for moment, count in zip(since, counts, strict=True)
    ]


def _counts(session: Session, buckets: Buckets, relation: str) -> list[int]:
    return [int(found["n"]) for found in measured(session, buckets, relation, {"n": "count(*)"})]
