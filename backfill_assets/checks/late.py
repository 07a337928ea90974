"""Rows of an old window that reached the source after their slice was last read: one scan of the source for all slices."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timezone

from backfill_assets.checks.by_slice import Buckets, by_columns
from backfill_assets.checks.read_times import read_times
from backfill_assets.engines import Session, Spelling
from backfill_assets.engines.sql import instant, quoted
from backfill_assets.errors import DeclarationError
from backfill_assets.expectations import Source
from backfill_assets.slice import Slice
from backfill_assets.table import Table
from backfill_assets.writing import AuditTable
from backfill_assets.writing.fit import family, folded
from backfill_assets.writing.reference import reference


@dataclass(frozen=True)
class LateSlice:
    """A slice with late rows: how many, when the first and the last of them came, and when it was last read."""

    slice: Slice
    rows: int
    oldest: datetime
    newest: datetime
    source_read_at: datetime


def late_slices(
    session: Session, audit: AuditTable, table: Table, slices: Sequence[Slice]
) -> list[LateSlice]:
    """Return those of `slices`, in their order, that have rows ingested at or after the slice's last read.

    A slice that was never loaded has none: it is a gap. A row without a time of ingestion is never late.
    """
    source, column = source_of(table)
    newest = audit.newest(session, table, Buckets.of(slices).whole)
    times = read_times(newest, slices)
    loaded = [(slice_, at) for slice_, at in zip(slices, times, strict=True) if at is not None]
    if not loaded:
        return []
    found, spelling = reference(session, table, source), session.spelling
    must_be_instant(session, table, found.relation, column)
    buckets = Buckets.of(found.slices([slice_ for slice_, _ in loaded]), session.spelling)
    came, columns = quoted(spelling, column), buckets.groups(spelling)
    oldest = instant(spelling, min(at for _, at in loaded))
    groups = session.fetch(
        f"SELECT {', '.join(columns)}, count(*), min({came}), max({came}) FROM {found.relation}"
        f" WHERE {buckets.condition(spelling)} AND {came} >= {oldest}"
        f" AND {is_late(spelling, buckets, column, [at for _, at in loaded])}"
        f"{by_columns(spelling, columns)}"
    )
    late: dict[int, LateSlice] = {}
    place_of = buckets.finder()
    for value, *rest in groups:
        place = place_of(value, rest.pop(0) if len(columns) > 1 else 0)
        if place is not None:
            late[place] = _with(late.get(place), loaded[place], *rest)
    return [late[place] for place in sorted(late)]


def is_late(
    spelling: Spelling, buckets: Buckets, ingested_at: str, since: Sequence[datetime | None]
) -> str:
    """Return the SQL that holds for rows that arrived at or after the instant of their slice; for none where it is None."""
    moment = buckets.per_slice(spelling, [instant(spelling, one) for one in since])
    return f"{quoted(spelling, ingested_at)} >= {moment}"


def source_of(table: Table) -> tuple[Source, str]:
    """Return the table's source and its column of ingestion; raise where one of them is not declared."""
    if table.source is not None and table.source.ingested_at:
        return table.source, table.source.ingested_at
    lacking = "its source names no ingested_at" if table.source else "it declares no source"
    raise DeclarationError(
        f"{table.qualified} cannot be looked through for late rows",
        f"{lacking}, so nobody can tell when a row reached it",
        "Declare source=Source('schema.table', on='the_time_column', ingested_at='the_column')",
    )


def _with(
    so_far: LateSlice | None,
    loaded: tuple[Slice, datetime],
    rows: int,
    oldest: datetime,
    newest: datetime,
) -> LateSlice:
    slice_, read_at = loaded
    first, last, read = (at.astimezone(timezone.utc) for at in (oldest, newest, read_at))
    if so_far is None:
        return LateSlice(slice_, rows, first, last, read)
    return LateSlice(
        slice_, so_far.rows + rows, min(so_far.oldest, first), max(so_far.newest, last), read
    )


def must_be_instant(session: Session, table: Table, relation: str, column: str) -> None:
    """Raise unless the column of ingestion has a zone: a wall clock does not say before or after a read."""
    spelling = session.spelling
    columns = session.columns_of(relation) or {}
    actual = next(
        kind for name, kind in columns.items() if folded(name, spelling) == folded(column, spelling)
    )
    if family(actual, spelling) != "timestamptz":
        raise DeclarationError(
            f"{table.qualified} cannot be looked through for late rows",
            f"column {column!r} of its source holds {actual}, which does not say at which instant a row came",
            f"Name an instant: write the source as a SELECT that adds {column} AT TIME ZONE 'Europe/Berlin' (or"
            " whose clock it is) under a name of its own, and give that name as ingested_at",
        )
