"""What is true of many slices now: one scan of the table, one of each source, one look at the audit."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TypeVar

from backfill_assets.checks.by_slice import Buckets, Number, measured
from backfill_assets.checks.late import is_late, must_be_instant
from backfill_assets.checks.read_times import read_times
from backfill_assets.engines import Session, Spelling
from backfill_assets.engines.sql import by_type, qualified, quoted, summed
from backfill_assets.errors import BackfillError, DeclarationError
from backfill_assets.expectations import NoRows, RowCount, Source, Totals
from backfill_assets.slice import Slice
from backfill_assets.table import Table
from backfill_assets.writing import AuditTable, Load
from backfill_assets.writing.audit import Key, key_of, last_loads
from backfill_assets.writing.expecting import (
    filled,
    number,
    scale_of,
    summed_columns,
    whose_of,
)
from backfill_assets.writing.fit import folded
from backfill_assets.writing.reference import Reference, reference

# the last load of a slice, by `key_of`
Loads = Mapping[Key, Load]

T = TypeVar("T")

# the slices that are looked at together: bounded memory for a table of many years
AT_ONCE = 400


@dataclass(frozen=True)
class Counted:
    """Rows of one slice: how many, how many different unique keys (None without a key), sums by column.

    `late` counts source rows that arrived after the slice's source was read; None where nobody can tell.
    """

    rows: int
    keys: int | None = None
    sums: Mapping[str, Number] = field(default_factory=dict[str, Number])
    late: int | None = None
    scales: Mapping[str, float] = field(default_factory=dict[str, float])


@dataclass(frozen=True)
class Facts:
    """Facts of some slices, by their numbers; an error stands where something could not be found out."""

    columns: Mapping[str, str] | None
    table: Sequence[Counted] | BackfillError
    sources: Mapping[Source, Sequence[Counted | BackfillError] | BackfillError]
    queries: Mapping[str, Sequence[Number | BackfillError | None]]
    loads: Loads
    read_at: Sequence[datetime | None] = ()
    late_problem: BackfillError | None = None


def facts_of(session: Session, table: Table, slices: Sequence[Slice], audit: AuditTable) -> Facts:
    """Return what the checks of `slices` compare: the same number of statements for one slice and for a year."""
    columns = session.columns_of(qualified(session.spelling, table))
    newest = audit.newest(session, table, Buckets.of(slices).whole)
    sources: dict[Source, Sequence[Counted | BackfillError] | BackfillError] = {}
    read, late_problem = _since(session, table, slices, newest)
    for source, measures in _sources(table).items():
        try:
            sources[source] = _source(session, table, slices, source, measures, read)
        except BackfillError as error:
            sources[source] = error
    queries: dict[str, Sequence[Number | BackfillError | None]] = {}
    for rule in table.expects:
        if isinstance(rule, RowCount) and rule.query is not None:
            queries[rule.query] = _queried(session, slices, rule.query)
    try:
        counted = _table(session, table, slices, columns)
    except BackfillError as error:
        counted = error
    loads = last_loads(newest, slices)
    return Facts(columns, counted, sources, queries, loads, read, late_problem)


def _since(
    session: Session, table: Table, slices: Sequence[Slice], newest: Sequence[Load]
) -> tuple[Sequence[datetime | None], BackfillError | None]:
    """Return since when each slice is read, for tables that can tell what came late, or why that cannot be told."""
    source = table.source
    if source is None or source.ingested_at is None:
        return (), None
    try:
        at = reference(session, table, source)
        must_be_instant(session, table, at.relation, source.ingested_at)
        return read_times(newest, slices), None
    except BackfillError as error:
        return (), error


def newest_loads(
    session: Session, audit: AuditTable, table: Table, slices: Sequence[Slice]
) -> Loads:
    """Return what each slice was last loaded with, where that is known."""
    return last_loads(audit.newest(session, table, Buckets.of(slices).whole), slices)


def _table(
    session: Session, table: Table, slices: Sequence[Slice], columns: Mapping[str, str] | None
) -> list[Counted]:
    if columns is None:
        return [Counted(0, 0 if table.unique_key else None) for _ in slices]
    spelling, sums = session.spelling, summed_columns(table.expects)
    measures = {"rows": "count(*)"}
    if table.unique_key:
        measures["keys"] = count_apart(spelling, table.unique_key, columns)
    measures |= {f"sum {name}": summed(spelling, quoted(spelling, name)) for name in sums}
    measures |= {f"abs {name}": summed(spelling, f"abs({quoted(spelling, name)})") for name in sums}
    relation = qualified(spelling, table)
    found = measured(session, Buckets.of(slices, session.spelling, apart=True), relation, measures)
    return [
        Counted(
            int(one["rows"]),
            int(one["keys"]) if table.unique_key else None,
            {name: one[f"sum {name}"] for name in sums},
            scales={name: scale_of(one[f"abs {name}"]) for name in sums},
        )
        for one in found
    ]


def count_apart(spelling: Spelling, key: Sequence[str], types: Mapping[str, str]) -> str:
    """Return the SQL that counts different keys, two NULLs being no difference; `types` are those of all columns."""
    if len(key) > 1:
        kinds = {folded(name, spelling): kind for name, kind in types.items()}
        parts = (
            by_type(spelling.key_parts, kinds.get(folded(name, spelling), "")).format(
                column=quoted(spelling, name)
            )
            for name in key
        )
        return spelling.count_rows_apart.format(columns=spelling.key_joint.join(parts))
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
) -> list[Counted | BackfillError]:
    """Count each slice's rows in the source; its clock may not tell where some of them begin, and does for the others."""
    spelling, at = session.spelling, reference(session, table, source)
    cut = [_cut_or_why(at, slice_) for slice_ in slices]
    own = [slice_ for slice_ in cut if isinstance(slice_, Slice)]
    since_each = [
        since for slice_, since in zip(cut, read, strict=False) if isinstance(slice_, Slice)
    ]
    buckets = Buckets.of(own, session.spelling)
    measures = {"rows": "count(*)"}
    measures |= {f"sum {name}": summed(spelling, quoted(spelling, name)) for name in sums}
    late = source is table.source and source.ingested_at is not None and len(read) > 0
    if late:
        column = str(source.ingested_at)
        came_late = is_late(spelling, buckets, column, since_each)
        measures["late"] = f"count(CASE WHEN {came_late} THEN 1 END)"
    found = iter(measured(session, buckets, at.relation, measures))
    return [
        slice_ if isinstance(slice_, BackfillError) else _counted(next(found), sums, late=late)
        for slice_ in cut
    ]


def _cut_or_why(at: Reference, slice_: Slice) -> Slice | BackfillError:
    try:
        return at.slices([slice_])[0]
    except BackfillError as error:
        return error


def _counted(one: Mapping[str, Number], sums: Iterable[str], *, late: bool) -> Counted:
    return Counted(
        int(one["rows"]),
        None,
        {name: one[f"sum {name}"] for name in sums},
        int(one["late"]) if late else None,
    )


def _queried(
    session: Session, slices: Sequence[Slice], query: str
) -> list[Number | BackfillError | None]:
    """Return what a query says of each slice."""

    def ask(places: Sequence[int]) -> list[Number | None]:
        asked = " UNION ALL ".join(
            f"SELECT {place} AS place, (\n{filled(session, slices[place], query)}\n) AS expected"
            for place in places
        )
        found = {int(place): value for place, value in session.fetch(asked)}
        return [found.get(place) for place in places]

    return together_or_alone(ask, len(slices))


def together_or_alone(
    ask: Callable[[Sequence[int]], Sequence[T]], count: int
) -> list[T | BackfillError]:
    """Return what `ask` says of each of `count` slices, asked for many at once; where one fails, each of them alone."""
    found: list[T | BackfillError] = []
    for first in range(0, count, AT_ONCE):
        places = range(first, min(first + AT_ONCE, count))
        try:
            found += ask(places)
        except BackfillError:
            for place in places:
                try:
                    found += ask([place])
                except BackfillError as error:
                    found.append(error)
    return found


def against(
    facts: Facts, slice_: Slice, place: int, rule: RowCount | Totals, about: str
) -> tuple[Number | None, str]:
    """Return what `rule` expects of a slice, and whose number it is; raise where it could not be found out."""
    source = slice_.table.source if rule.against == "source" else rule.against
    if isinstance(source, int):
        return source, "its declaration"
    if isinstance(source, Source):
        theirs = facts.sources[source]
        counted = theirs if isinstance(theirs, BackfillError) else theirs[place]
        if isinstance(counted, BackfillError):
            raise counted
        expected = counted.rows if isinstance(rule, RowCount) else counted.sums[about]
        return expected, whose_of(slice_, rule)
    if source == "last_load":
        load = facts.loads.get(key_of(slice_))
        return load.rows_after if load else None, "the last load"
    value = facts.queries[str(source)][place]
    if isinstance(value, BackfillError):
        raise value
    if value is None:
        raise DeclarationError(
            "what was expected is not known", "its query gave no number", "Correct it"
        )
    return number(value, "its query"), "its query"
