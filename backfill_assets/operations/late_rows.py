"""Rows of an old window that reached the source after their slice was last read, found in a handful of statements.

Rows are grouped by day or quarter of an hour and counted from the oldest read of all on. Only where a group has rows on
both sides of its own slice's read, it is counted again, each group from its own instant on.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timezone
from typing import Any

from backfill_assets.checks.by_slice import Buckets
from backfill_assets.engines import Session, Spelling
from backfill_assets.engines.sql import instant, listed, quoted, text
from backfill_assets.errors import DeclarationError
from backfill_assets.expectations import Source
from backfill_assets.operations.read_times import read_times
from backfill_assets.slice import Slice
from backfill_assets.table import Table
from backfill_assets.writing import AuditTable
from backfill_assets.writing.fit import family, folded
from backfill_assets.writing.reference import reference

_AT_ONCE = 1000


@dataclass(frozen=True)
class LateSlice:
    """A slice with late rows: how many, when the first and the last of them came, and when it was last read."""

    slice: Slice
    rows: int
    oldest: datetime
    newest: datetime
    source_read_at: datetime


@dataclass(frozen=True)
class _Group:
    """Rows of one day (or quarter of an hour) and one value of each dimension, and the slice they belong to."""

    value: Any
    slice: int
    rows: int
    oldest: datetime
    newest: datetime


def late_slices(
    session: Session, audit: AuditTable, table: Table, slices: Sequence[Slice]
) -> list[LateSlice]:
    """Return those of `slices`, in their order, that have rows ingested at or after the slice's last read.

    A slice that was never loaded has none: it is a gap. A row without a time of ingestion is never late.
    """
    source, column = source_of(table)
    times = read_times(session, audit, table, slices)
    loaded = [(slice_, at) for slice_, at in zip(slices, times, strict=True) if at is not None]
    if not loaded:
        return []
    found = reference(session, table, source)
    _must_be_instant(session, table, found.relation, column)
    asked = _Asked(
        session,
        found.relation,
        Buckets.of(found.slices([slice_ for slice_, _ in loaded])),
        quoted(session.spelling, column),
        [at for _, at in loaded],
    )
    whole = [group for group in asked.from_oldest() if group.newest >= asked.read[group.slice]]
    mixed = [group for group in whole if group.oldest < asked.read[group.slice]]
    exact = [group for group in whole if group.oldest >= asked.read[group.slice]]
    for at in range(0, len(mixed), _AT_ONCE):
        exact += asked.from_own(mixed[at : at + _AT_ONCE])
    return list(_gathered(exact, loaded))


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


@dataclass(frozen=True)
class _Asked:
    """What is asked of the source: `read` has the read time of each slice of `buckets`."""

    session: Session
    relation: str
    buckets: Buckets
    ingested: str
    read: Sequence[datetime]

    def from_oldest(self) -> Iterator[_Group]:
        """Count each group's rows from the oldest read of all on."""
        names = [column for column, _ in self.buckets.slices[0].fixed]
        columns = f", {listed(self._spelling, names)}" if names else ""
        by = ", ".join(str(n + 1) for n in range(1 + len(names)))
        groups = self.session.fetch(
            f"SELECT {self._group} AS grouped{columns}, {self._measures(self.ingested)}"
            f" FROM {self.relation} WHERE {self._since(min(self.read))} GROUP BY {by}"
        )
        place_of = self.buckets.finder()
        for value, *rest in groups:
            number = place_of(value, rest[: len(names)])
            if number is not None:
                yield _Group(value, number, *rest[len(names) :])

    def from_own(self, groups: Sequence[_Group]) -> Iterator[_Group]:
        """Count the rows of `groups` again, each from the read time of its own slice on."""
        fixed = {self.buckets.slices[group.slice].fixed for group in groups}
        places = {values: number for number, values in enumerate(sorted(fixed))}
        by_key: dict[tuple[str, int], _Group] = {}
        for group in groups:
            place = places[self.buckets.slices[group.slice].fixed]
            by_key[_literal(self._spelling, group.value), place] = group
        asked = ", ".join(
            f"({number}, {value}, {place}, {instant(self._spelling, self.read[group.slice])})"
            for number, ((value, place), group) in enumerate(by_key.items())
        )
        oldest = min(self.read[group.slice] for group in groups)
        counted = self.session.fetch(
            f"SELECT asked.number, {self._measures('there.ingested')}"
            f" FROM (SELECT {self._group} AS grouped, {self._place(places)} AS place,"
            f" {self.ingested} AS ingested FROM {self.relation} WHERE {self._since(oldest)}) AS there"
            f" JOIN (VALUES {asked}) AS asked (number, grouped, place, read_at)"
            " ON there.grouped = asked.grouped AND there.place = asked.place"
            " WHERE there.ingested >= asked.read_at GROUP BY 1"
        )
        by_number = list(by_key.values())
        for number, *measures in counted:
            group = by_number[number]
            yield _Group(group.value, group.slice, *measures)

    @property
    def _spelling(self) -> Spelling:
        return self.session.spelling

    @property
    def _group(self) -> str:
        return self.buckets.expression(self._spelling)

    @staticmethod
    def _measures(ingested: str) -> str:
        return f"count(*), min({ingested}), max({ingested})"

    def _since(self, moment: datetime) -> str:
        condition = self.buckets.condition(self._spelling)
        return f"{condition} AND {self.ingested} >= {instant(self._spelling, moment)}"

    def _place(self, places: dict[tuple[tuple[str, str], ...], int]) -> str:
        if len(places) == 1 and () in places:
            return "0"
        whens = " ".join(
            f"WHEN {' AND '.join(f'{quoted(self._spelling, column)} = {text(self._spelling, value)}' for column, value in fixed)}"
            f" THEN {number}"
            for fixed, number in places.items()
        )
        return f"CASE {whens} END"


def _gathered(
    groups: Iterable[_Group], loaded: Sequence[tuple[Slice, datetime]]
) -> Iterator[LateSlice]:
    found: dict[int, list[_Group]] = {}
    for group in groups:
        found.setdefault(group.slice, []).append(group)
    for number in sorted(found):
        slice_, read_at = loaded[number]
        late = found[number]
        yield LateSlice(
            slice_,
            sum(group.rows for group in late),
            min(group.oldest for group in late).astimezone(timezone.utc),
            max(group.newest for group in late).astimezone(timezone.utc),
            read_at.astimezone(timezone.utc),
        )


def _literal(spelling: Spelling, value: Any) -> str:
    """Return a group's value as it is compared with the expression that made it."""
    if isinstance(value, datetime):
        value = value.date()
    if isinstance(value, date):
        return spelling.literals["date"].format(value.isoformat())
    return text(spelling, value) if isinstance(value, str) else str(int(value))


def _must_be_instant(session: Session, table: Table, relation: str, column: str) -> None:
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
