"""Since when each slice's rows are known to be read: from the loads in the audit, whatever slices they were cut into."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import date, datetime, timedelta

from backfill_assets.slice import Slice
from backfill_assets.window import Window
from backfill_assets.writing import Load

_DAY = timedelta(days=1)
Days = Mapping["date | None", Sequence[Load]]


def read_times(newest: Sequence[Load], slices: Sequence[Slice]) -> list[datetime | None]:
    """Return for each slice the instant before its source was last read in full; None where it never was.

    `newest` are the newest loads of the table that touch the slices, as `AuditTable.newest` gives them.

    A slice need not have been loaded as the one that it is now: a month may have come in days, or a day as part of a
    month, or a region with the whole table. What is read in parts is read since the oldest of them.
    """
    found: dict[str, dict[date | None, list[Load]]] = {}
    for load in newest:
        days = found.setdefault(load.dimensions, {})
        for day in _days(load.window_start, load.window_end):
            days.setdefault(day, []).append(load)
    named = [(json.loads(dimensions).items(), days) for dimensions, days in found.items()]
    by_fixed = {
        slice_.fixed: [days for names, days in named if names <= dict(slice_.fixed).items()]
        for slice_ in slices
    }
    return [_read_at(slice_, by_fixed[slice_.fixed]) for slice_ in slices]


def _read_at(slice_: Slice, loads: Sequence[Days]) -> datetime | None:
    """Return the read time of the load with which, from the newest on, all of the slice's window is covered."""
    window = slice_.window
    days = _days(window.start, window.end) if window else [None]
    touching = {
        load.audit_id: load
        for found in loads
        for day in [None, *days]
        for load in found.get(day, ())
    }
    left = [] if window is None else [window]
    for load in sorted(touching.values(), key=lambda load: load.source_read_at, reverse=True):
        if load.window_start is None or load.window_end is None:
            return load.source_read_at
        if window is not None:
            left = [part for one in left for part in _without(one, load)]
            if not left:
                return load.source_read_at
    return None


def _without(window: Window, load: Load) -> list[Window]:
    """Return what is left of `window` beside that of `load`."""
    start, end = load.window_start, load.window_end
    if start is None or end is None or start >= window.end or end <= window.start:
        return [window]
    parts = [(window.start, start), (end, window.end)]
    return [Window(first, last) for first, last in parts if first < last]


def _days(start: datetime | None, end: datetime | None) -> list[date | None]:
    """Return the days of UTC that a window touches; one None for a whole table."""
    if start is None or end is None:
        return [None]
    window = Window(start, end)
    count = (window.end - window.start) // _DAY + 2
    first = window.start.date()
    return [first + n * _DAY for n in range(count) if first + n * _DAY <= window.end.date()]
