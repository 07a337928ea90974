"""Hours of a day without a row, for tables that say which hours have some."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta, timezone

from backfill_assets.checks.by_slice import Buckets
from backfill_assets.checks.facts import Facts
from backfill_assets.engines import Session
from backfill_assets.engines.sql import qualified
from backfill_assets.errors import BackfillError
from backfill_assets.slice import Slice
from backfill_assets.table import SliceColumn, Table
from backfill_assets.window import zone_named

_QUARTER = timedelta(minutes=15)


def missing_hours(
    session: Session, table: Table, slices: Sequence[Slice], facts: Facts, now: datetime
) -> dict[int, list[int]] | BackfillError:
    """Return the local hours without a row, by the number of the slice; closed days and hours to come have none.

    One statement for all slices. A day of 23 hours is not asked for the one that its clock skips.
    """
    column = table.slice_column
    if table.hours is None or column is None or facts.columns is None or not slices:
        return {}
    if column.kind not in ("timestamp", "timestamptz"):
        return {}
    quarters = Buckets(tuple(slices), column, "seconds", 900)
    spelling = session.spelling
    columns = quarters.groups(spelling)
    try:
        found = session.fetch(
            f"SELECT DISTINCT {', '.join(columns)} FROM {qualified(spelling, table)} WHERE {quarters.condition(spelling)}"
        )
    except BackfillError as error:
        return error
    there: dict[int | None, set[tuple[int, int, int, int]]] = {}
    for number, *fixed in found:
        if number is not None:
            hour = _hour_of(int(number), column)
            there.setdefault(fixed[0] if fixed else 0, set()).add(hour)
    lacking: dict[int, list[int]] = {}
    for place, slice_ in enumerate(slices):
        expected = _hours(slice_, table, column, now)
        own = there.get(quarters.numbers[slice_.fixed], set())
        hours = sorted({hour[-1] for hour in expected - own})
        if hours:
            lacking[place] = hours
    return lacking


def _hour_of(quarter: int, column: SliceColumn) -> tuple[int, int, int, int]:
    """Return the local hour in which a quarter of an hour lies, counted since 1970 by the column's own clock."""
    at = datetime.fromtimestamp(quarter * 900, timezone.utc)
    local = at if column.kind == "timestamp" else at.astimezone(zone_named(column.zone))
    return (local.year, local.month, local.day, local.hour)


def _hours(
    slice_: Slice, table: Table, column: SliceColumn, now: datetime
) -> set[tuple[int, int, int, int]]:
    """Return the local hours of a slice that are over and are to have rows."""
    window, zone = slice_.window, zone_named(column.zone)
    if window is None or table.hours is None:
        return set()
    first, last = table.hours
    found: set[tuple[int, int, int, int]] = set()
    at = window.start
    while at < window.end and at + timedelta(hours=1) <= now:
        local = at.astimezone(zone)
        if first <= local.hour < last and not table.is_closed(local.date()):
            found.add((local.year, local.month, local.day, local.hour))
        at += _QUARTER
    return found
