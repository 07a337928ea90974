"""What is true of many slices now: one scan of the table, one of each source, one look at the audit."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from backfill_assets.checks.by_slice import Buckets, Number, measured
from backfill_assets.checks.late import is_late, must_be_instant
from backfill_assets.checks.read_times import read_times
from backfill_assets.engines import Session, Spelling
from backfill_assets.engines.sql import listed, qualified, quoted
from backfill_assets.errors import BackfillError
from backfill_assets.expectations import NoRows, RowCount, Source, Totals
from backfill_assets.slice import Slice
from backfill_assets.table import Table
from backfill_assets.writing import AuditTable, Load
from backfill_assets.writing.audit import dimensions_of
from backfill_assets.writing.expecting import filled, summed_columns
from backfill_assets.writing.reference import reference

# the newest load of a slice, by `key_of`
Loads = Mapping[tuple[str, "datetime | None"], Load]

_QUERIES_AT_ONCE = 200


@dataclass(frozen=True)
class Counted:
    """Rows of one slice: how many, how many different unique keys (None without a key), sums by column.

    `late` counts source rows that arrived after the slice's source was read; None where nobody can tell.
    """

    rows: int
    keys: int | None = None
    sums: Mapping[str, Number] = field(default_factory=dict[str, Number])
    late: int | None = None


@dataclass(frozen=True)
class Facts:
    """Facts of some slices, by their numbers; an error stands where something could not be found out."""

    columns: Mapping[str, str] | None
    table: Sequence[Counted] | BackfillError
    sources: Mapping[Source, Sequence[Counted] | BackfillError]
    queries: Mapping[str, Sequence[Number | None] | BackfillError]
    loads: Loads
    read_at: Sequence[datetime | None] = ()


def facts_of(session: Session, table: Table, slices: Sequence[Slice], audit: AuditTable) -> Facts:
    """Return what the checks of `slices` compare: the same number of statements for one slice and for a year."""
    columns = session.columns_of(qualified(session.spelling, table))
    loads = newest_loads(session, audit, table, slices)
    sources: dict[Source, Sequence[Counted] | BackfillError] = {}
    told_late = table.source is not None and table.source.ingested_at is not None
    read = read_times(session, audit, table, slices) if told_late else []
    for source, measures in _sources(table).items():
        try:
            sources[source] = _source(session, table, slices, source, measures, read)
        except BackfillError as error:
            sources[source] = error
    queries: dict[str, Sequence[Number | None] | BackfillError] = {}
    for rule in table.expects:
        if (
            isinstance(rule, RowCount)
            and isinstance(rule.against, str)
            and rule.against
            not in (
                "source",
                "last_load",
            )
        ):
            try:
                queries[rule.against] = _queried(session, slices, rule.against)
            except BackfillError as error:
                queries[rule.against] = error
    try:
        counted = _table(session, table, slices, columns)
    except BackfillError as error:
        counted = error
    return Facts(columns, counted, sources, queries, loads, read)


def newest_loads(
    session: Session, audit: AuditTable, table: Table, slices: Sequence[Slice]
) -> Loads:
    """Return the newest load of each slice that has one."""
    if len(slices) == 1:
        load = audit.last_of(session, slices[0])
        return {key_of(slices[0]): load} if load else {}
    found = audit.newest(session, table, Buckets.of(slices).whole)
    return {(load.dimensions, load.window_start): load for load in found}


def key_of(slice_: Slice) -> tuple[str, datetime | None]:
    """Return what a slice and its loads have in common: the dimensions and the start of the window."""
    return dimensions_of(slice_), slice_.window.start if slice_.window else None


def _table(
    session: Session, table: Table, slices: Sequence[Slice], columns: Mapping[str, str] | None
) -> list[Counted]:
    if columns is None:
        return [Counted(0, 0 if table.unique_key else None) for _ in slices]
    spelling, sums = session.spelling, summed_columns(table.expects)
    measures = {"rows": "count(*)"}
    if table.unique_key:
        measures["keys"] = _count_apart(spelling, table.unique_key)
    measures |= {f"sum {name}": f"sum({quoted(spelling, name)})" for name in sums}
    relation = qualified(spelling, table)
    found = measured(session, Buckets.of(slices, apart=True), relation, measures)
    return [
        Counted(
            int(one["rows"]),
            int(one["keys"]) if table.unique_key else None,
            {name: one[f"sum {name}"] for name in sums},
        )
        for one in found
    ]


def _count_apart(spelling: Spelling, key: Sequence[str]) -> str:
    """Return the SQL that counts different keys, two NULLs being no difference."""
    if len(key) > 1:
        return spelling.count_rows_apart.format(columns=listed(spelling, key))
    name = quoted(spelling, key[0])  # a bare column is counted in half the time
    return f"count(DISTINCT {name}) + coalesce(max(CASE WHEN {name} IS NULL THEN 1 END), 0)"


def _sources(table: Table) -> dict[Source, set[str]]:
    """Return the sources that a table is compared with, each with the columns to be summed."""
    found: dict[Source, set[str]] = {}
    for rule in table.expects:
        if isinstance(rule, NoRows):
            continue
        against = table.source if rule.against == "source" else rule.against
        if isinstance(against, Source):
            found.setdefault(against, set()).update(
                rule.measures if isinstance(rule, Totals) else ()
            )
    if table.source is not None and table.source.ingested_at:
        found.setdefault(table.source, set())
    return found


def _source(
    session: Session,
    table: Table,
    slices: Sequence[Slice],
    source: Source,
    sums: Iterable[str],
    read: Sequence[datetime | None],
) -> list[Counted]:
    spelling, at = session.spelling, reference(session, table, source)
    buckets = Buckets.of(at.slices(slices))
    measures = {"rows": "count(*)"}
    measures |= {f"sum {name}": f"sum({quoted(spelling, name)})" for name in sums}
    late = source is table.source and source.ingested_at is not None
    if late:
        column = str(source.ingested_at)
        must_be_instant(session, table, at.relation, column)
        since = is_late(spelling, buckets, column, read)
        measures["late"] = f"count(CASE WHEN {since} THEN 1 END)"
    found = measured(session, buckets, at.relation, measures)
    return [
        Counted(
            int(one["rows"]),
            None,
            {name: one[f"sum {name}"] for name in sums},
            int(one["late"]) if late else None,
        )
        for one in found
    ]


def _queried(session: Session, slices: Sequence[Slice], query: str) -> list[Number | None]:
    found: dict[int, Number | None] = {}
    for first in range(0, len(slices), _QUERIES_AT_ONCE):
        asked = " UNION ALL ".join(
            f"SELECT {number} AS number, ({filled(session, slices[number], query)}) AS expected"
            for number in range(first, min(first + _QUERIES_AT_ONCE, len(slices)))
        )
        found |= {int(number): value for number, value in session.fetch(asked)}
    return [found.get(number) for number in range(len(slices))]
