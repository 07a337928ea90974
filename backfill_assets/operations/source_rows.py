"""How many rows the source has for each slice, and how many of them came late: a statement for all slices together."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, datetime, timedelta
from typing import Any

import dagster as dg

from backfill_assets.checks.by_slice import Buckets, measured
from backfill_assets.engines import Session, Spelling
from backfill_assets.engines.sql import instant, quoted, text
from backfill_assets.expectations import Source
from backfill_assets.slice import Slice
from backfill_assets.table import Table
from backfill_assets.writing import Select
from backfill_assets.writing.fit import resolved
from backfill_assets.writing.reference import reference

_GROUPS = 20_000


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
    # over all regions at once: they are told apart by the rows themselves
    plain = Slice(Table(table.name, table.slice_column, schema=table.schema), buckets.whole)
    query = resolved(session, plain, select).for_slice(session.spelling, plain)
    return _counts(session, buckets, f"(\n{query}\n) AS source_rows")


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
    """Return how many rows of each slice reached the source at or after `since`; None where that is None.

    Each slice has an instant of its own, so its groups are joined with the source: by equality, which is quick where
    a join with windows is slow.
    """
    found, spelling = reference(session, table, source), session.spelling
    known = [number for number, moment in enumerate(since) if moment is not None]
    late: list[int | None] = [None] * len(slices)
    if not known or source.ingested_at is None:
        return late
    cut = found.slices([slices[number] for number in known])
    buckets = Buckets.of(cut)
    rows = [
        [group, *(text(spelling, value) for _, value in slice_.fixed), instant(spelling, since[n])]
        for n, slice_ in zip(known, cut, strict=True)
        for group in _groups(spelling, buckets, slice_)
    ]
    counts = [0] * len(cut)
    for at in range(0, len(rows), _GROUPS):
        part = _joined(
            spelling, buckets, found.relation, source.ingested_at, rows[at : at + _GROUPS]
        )
        counts = [sum(pair) for pair in zip(counts, _counts(session, buckets, part), strict=True)]
    for number, count in zip(known, counts, strict=True):
        late[number] = count
    return late


def _joined(
    spelling: Spelling, buckets: Buckets, relation: str, ingested_at: str, rows: list[list[str]]
) -> str:
    """Return the rows of `relation` that came at or after the instant of their group."""
    dimensions = [column for column, _ in buckets.slices[0].fixed]
    names = [f"late_{number}" for number in range(len(rows[0]))]
    values = ", ".join(f"({', '.join(row)})" for row in rows)
    same = [
        f"{left} = {right}"
        for left, right in zip(
            [buckets.expression(spelling), *(quoted(spelling, name) for name in dimensions)],
            names,
            strict=False,
        )
    ]
    came = f"{quoted(spelling, ingested_at)} >= {names[-1]}"
    return (
        f"(SELECT source_rows.* FROM {relation} JOIN (VALUES {values}) AS late ({', '.join(names)})"
        f" ON {' AND '.join([*same, came])}) AS late_rows"
    )


def _groups(spelling: Spelling, buckets: Buckets, slice_: Slice) -> list[str]:
    """Return the literals of the groups of which a slice is made."""
    column, window = buckets.column, slice_.window
    if column is None or window is None:
        return ["0"]
    if buckets.by_days:
        return [_day(column.kind, day) for day in window.days(column.zone)]
    bounds: Any = column.bounds(window)
    step, start, end = timedelta(seconds=buckets.step), *(_plain(edge) for edge in bounds)
    epoch = datetime(1970, 1, 1)  # noqa: DTZ001 - the clock of the column itself, whatever its zone
    return [str((start - epoch) // step + number) for number in range((end - start) // step)]


def _plain(moment: datetime) -> datetime:
    return moment.replace(tzinfo=None)


def _day(kind: str, day: date) -> str:
    if kind == "int_yyyymmdd":
        return f"{day:%Y%m%d}"
    return f"'{day.isoformat()}'" if kind == "iso_text" else f"DATE '{day.isoformat()}'"


def _counts(session: Session, buckets: Buckets, relation: str) -> list[int]:
    return [int(found["n"]) for found in measured(session, buckets, relation, {"n": "count(*)"})]
