"""Measures of many slices in one statement: rows are grouped by day or quarter of an hour, and summed here.

A statement for each of 3,650 days would take minutes, and a join with 3,650 windows is slow on most engines.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timezone
from typing import Any

from backfill_assets.engines import Session, Spelling
from backfill_assets.engines.sql import listed, quoted, text, within
from backfill_assets.slice import Slice
from backfill_assets.table import SliceColumn
from backfill_assets.window import Window

_STEPS = (900, 60, 1)


@dataclass(frozen=True)
class Buckets:
    """The slices of one table, to be found again from a group of its rows."""

    slices: tuple[Slice, ...]
    column: SliceColumn | None
    by_days: bool
    step: int

    @classmethod
    def of(cls, slices: Sequence[Slice]) -> Buckets:
        """Choose the coarsest groups of which every slice is made."""
        column = slices[0].table.slice_column if slices else None
        windows = {s.window for s in slices if s.window is not None}
        if column is None or not windows:
            return cls(tuple(slices), None, True, 1)
        by_days = column.kind not in ("timestamp", "timestamptz") or all(
            window.is_whole_days(column.zone) for window in windows
        )
        edges = (
            {edge for window in windows for edge in _seconds(column, window)}
            if not by_days
            else {0.0}
        )
        step = next(step for step in _STEPS if step == 1 or all(edge % step == 0 for edge in edges))
        return cls(tuple(slices), column, by_days, step)

    def expression(self, spelling: Spelling) -> str:
        """Return the SQL of a row's group."""
        if self.column is None:
            return "0"
        name, kind = quoted(spelling, self.column.name), self.column.kind
        if not self.by_days:
            return f"floor(extract(epoch FROM {name}) / {self.step})"
        if kind == "timestamptz":
            return f"CAST({name} AT TIME ZONE {text(spelling, self.column.zone)} AS DATE)"
        if kind == "timestamp":
            return f"CAST({name} AS DATE)"
        return f"substr({name}, 1, 10)" if kind == "iso_text" else name

    def condition(self, spelling: Spelling) -> str:
        """Return the SQL that holds for the rows of any of the slices, and perhaps for some between them."""
        whole = self.whole
        return (
            "1 = 1"
            if whole is None or self.column is None
            else within(spelling, self.column, whole)
        )

    @property
    def whole(self) -> Window | None:
        """The window from the first slice to the last."""
        windows = [s.window for s in self.slices if s.window is not None]
        if not windows:
            return None
        return Window(min(w.start for w in windows), max(w.end for w in windows))

    def sums(self, groups: Sequence[Sequence[Any]], measures: int) -> list[list[float]]:
        """Return the sum of each measure for each slice; a group is its value, its dimensions and its measures."""
        dimensions = len(self.slices[0].fixed) if self.slices else 0
        place_of = self.finder()
        total = [[0.0] * measures for _ in self.slices]
        for group in groups:
            number = place_of(group[0], group[1 : 1 + dimensions])
            if number is not None:
                for measure, amount in enumerate(group[1 + dimensions :]):
                    total[number][measure] += float(amount or 0)
        return total

    def finder(self) -> Callable[[Any, Sequence[Any]], int | None]:
        """Return what tells the number of the slice to which a group belongs, by its value and its dimensions."""
        found: dict[tuple[str, ...], list[tuple[Any, Any, int]]] = {}
        for number, slice_ in enumerate(self.slices):
            start, end = self._edges(slice_)
            key = tuple(value for _, value in slice_.fixed)
            found.setdefault(key, []).append((start, end, number))
        ordered = {key: sorted(edges) for key, edges in found.items()}
        firsts = {key: [start for start, _, _ in edges] for key, edges in ordered.items()}

        def place_of(value: Any, dimensions: Sequence[Any]) -> int | None:
            fixed = tuple(str(part) for part in dimensions)
            if value is None or fixed not in ordered:
                return None
            place = bisect_right(firsts[fixed], self._comparable(value)) - 1
            if place < 0:
                return None
            _, end, number = ordered[fixed][place]
            return number if self._comparable(value) < end else None

        return place_of

    def _edges(self, slice_: Slice) -> tuple[Any, Any]:
        if self.column is None or slice_.window is None:
            return 0, 1
        if not self.by_days:
            start, end = _seconds(self.column, slice_.window)
            return start / self.step, end / self.step
        if self.column.kind in ("timestamp", "timestamptz"):
            days = slice_.window.days(self.column.zone)
            return days[0].toordinal(), days[-1].toordinal() + 1
        return tuple(self._comparable(edge) for edge in self.column.bounds(slice_.window))  # type: ignore[return-value]

    @staticmethod
    def _comparable(value: Any) -> Any:
        if isinstance(value, datetime):
            value = value.date()
        return value.toordinal() if isinstance(value, date) else value


def measured(
    session: Session, buckets: Buckets, relation: str, measures: Mapping[str, str]
) -> list[dict[str, float]]:
    """Return the sums of `measures` (name to SQL aggregate) over `relation` for each slice, in one statement."""
    if not buckets.slices:
        return []
    spelling = session.spelling
    group = buckets.expression(spelling)
    dimensions = [column for column, _ in buckets.slices[0].fixed]
    by = ", ".join(["1", *(str(n + 2) for n in range(len(dimensions)))])
    columns = ", ".join(
        [f"{group} AS grouped", *([listed(spelling, dimensions)] if dimensions else [])]
    )
    groups = session.fetch(
        f"SELECT {columns}, {', '.join(measures.values())} FROM {relation}"
        f" WHERE {buckets.condition(spelling)} GROUP BY {by}"
    )
    sums = buckets.sums(groups, len(measures))
    return [dict(zip(measures, found, strict=True)) for found in sums]


def _seconds(column: SliceColumn, window: Window) -> tuple[float, float]:
    """Return the window's edges as the column's own clock counts seconds since 1970."""
    start, end = (
        bound.replace(tzinfo=timezone.utc) if bound.tzinfo is None else bound
        for bound in column.bounds(window)
        if isinstance(bound, datetime)
    )
    return start.timestamp(), end.timestamp()
