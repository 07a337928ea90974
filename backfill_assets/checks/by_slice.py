"""Measures of many slices in one statement: rows are grouped by day, by seconds or by slice, and summed here.

A statement for each of 3,650 days would take minutes, and a join with 3,650 windows is slow on most engines. What does
not add up from day to month, such as how many keys there are, asks for groups that are `apart`: one for each slice.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timezone
from functools import cached_property
from typing import Any, Literal

from backfill_assets.engines import Session, Spelling
from backfill_assets.engines.sql import bound, grouped, predicate, quoted, same_text, text, within
from backfill_assets.slice import Slice
from backfill_assets.table import SliceColumn
from backfill_assets.window import Window, zone_named
from backfill_assets.writing.expecting import Number, exact_decimals

_STEPS = (900, 60, 1)


Fixed = tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Buckets:
    """The slices of one table, to be found again from a group of its rows.

    `by` says what a group is: the whole table, a local day, `step` seconds, or the rows between two `edges` of slices.
    """

    slices: tuple[Slice, ...]
    column: SliceColumn | None
    by: Literal["whole", "days", "seconds", "edges"]
    step: int = 1

    @classmethod
    def of(
        cls, slices: Sequence[Slice], spelling: Spelling | None = None, *, apart: bool = False
    ) -> Buckets:
        """Choose the coarsest groups of which every slice is made; `apart`: such that each slice is one group."""
        column = slices[0].table.slice_column if slices else None
        windows = {s.window for s in slices if s.window is not None}
        if column is None or not windows:
            return cls(tuple(slices), None, "whole")
        if column.kind not in ("timestamp", "timestamptz") or all(
            window.is_whole_days(column.zone) for window in windows
        ):
            single = all(len(window.days(column.zone)) == 1 for window in windows)
            knows_zones = spelling is None or spelling.day_of_instant is not None
            days = (single or not apart) and (column.kind != "timestamptz" or knows_zones)
            return cls(tuple(slices), column, "days" if days else "edges")
        spans = [_seconds(column, window) for window in windows]
        lengths = {end - start for start, end in spans}
        if apart:
            (length, *others) = lengths
            even = not others and length == int(length) and all(s % length == 0 for s, _ in spans)
            if not even:
                return cls(tuple(slices), column, "edges")
            return cls(tuple(slices), column, "seconds", int(length))
        step = next(
            step
            for step in _STEPS
            if step == 1 or all(edge % step == 0 for span in spans for edge in span)
        )
        return cls(tuple(slices), column, "seconds", step)

    def expression(self, spelling: Spelling) -> str:
        """Return the SQL of a row's group."""
        if self.column is None:
            return "0"
        name, kind = quoted(spelling, self.column.name), self.column.kind
        if self.by == "edges":
            return self._stepped(spelling, [str(n) for n in range(len(self._places) - 1)])
        if self.by == "seconds":
            return spelling.in_steps.format(
                seconds=spelling.epoch_seconds.format(column=name), step=self.step
            )
        if kind == "timestamptz":
            if spelling.day_of_instant is None:
                return self._stepped(spelling, self._first_days(spelling))
            return spelling.day_of_instant.format(
                column=name, zone=text(spelling, self.column.zone)
            )
        if kind == "timestamp":
            return f"CAST({name} AS DATE)"
        return f"substring({name}, 1, 10)" if kind == "iso_text" else name

    def per_slice(self, spelling: Spelling, values: Sequence[str]) -> str:
        """Return the SQL that is `values[n]` for the rows of the slice with number `n`, and NULL between the slices."""

        def of(fixed: Fixed) -> str:
            own = [n for n, slice_ in enumerate(self.slices) if slice_.fixed == fixed]
            if self.column is None:
                return values[own[0]]
            return self._stepped(spelling, self._between(own, values))

        return self._by_dimensions(spelling, of)

    def _first_days(self, spelling: Spelling) -> list[str]:
        """Return between each two edges the local day of the first, for engines that do not know its zone."""
        assert self.column is not None
        zone, edges = zone_named(self.column.zone), list(self._places)
        days = [edge.astimezone(zone).date().isoformat() for edge in edges[:-1]]
        return [spelling.literals["date"].format(day) for day in days]

    def _between(self, own: Sequence[int], values: Sequence[str]) -> list[str]:
        """Return between each two edges the value of the slice that is there, of those with the numbers `own`."""
        found = ["NULL"] * (len(self._places) - 1)
        for number in own:
            first, last = (self._places[edge] for edge in self._bounds_of(self.slices[number]))
            found[first:last] = [values[number]] * (last - first)
        return found

    def _by_dimensions(self, spelling: Spelling, of: Callable[[Fixed], str]) -> str:
        """Return the SQL that is `of` the values that a row's dimensions have; NULL for values of no slice."""
        if list(self.numbers) == [()]:
            return of(())
        cases = " ".join(
            f"WHEN {' AND '.join(same_text(spelling, c, v) for c, v in fixed)} THEN {of(fixed)}"
            for fixed in self.numbers
        )
        return f"CASE {cases} END"

    def _stepped(self, spelling: Spelling, values: Sequence[str]) -> str:
        """Return the SQL that is `values[n]` between the edges `n` and `n + 1`: halved, so that it is not deep."""
        assert self.column is not None
        column, edges = self.column, list(self._places)
        name = quoted(spelling, column.name)

        if spelling.flat_cases:
            steps = [
                f"WHEN {name} < {bound(spelling, column, edge)} THEN {value}"
                for edge, value in zip(edges[1:-1], values, strict=False)
            ]
            return f"CASE {' '.join(steps)} ELSE {values[-1]} END" if steps else values[-1]

        def halved(first: int, last: int) -> str:
            if len(set(values[first:last])) == 1:
                return values[first]
            middle = (first + last) // 2
            edge = bound(spelling, column, edges[middle])
            return f"CASE WHEN {name} < {edge} THEN {halved(first, middle)} ELSE {halved(middle, last)} END"

        return halved(0, len(values))

    @cached_property
    def _places(self) -> dict[Any, int]:
        """The edges of all slices in order, each with its place."""
        edges = {edge for slice_ in self.slices for edge in self._bounds_of(slice_)}
        return {edge: place for place, edge in enumerate(sorted(edges))}

    def _bounds_of(self, slice_: Slice) -> tuple[Any, Any]:
        assert self.column is not None
        assert slice_.window is not None
        return self.column.bounds(slice_.window)

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

    def sums(self, groups: Sequence[Sequence[Any]], measures: int) -> list[list[Number]]:
        """Return the sum of each measure for each slice; a group is its value, its dimensions and its measures."""
        place_of, dimensions = self.finder(), bool(self.slices and self.slices[0].fixed)
        total: list[list[Number]] = [[0] * measures for _ in self.slices]
        with exact_decimals():
            for value, *rest in groups:
                number = place_of(value, rest.pop(0) if dimensions else 0)
                if number is not None:
                    for measure, amount in enumerate(rest):
                        if amount is not None:
                            total[number][measure] += amount
        return total

    def groups(self, spelling: Spelling) -> list[str]:
        """Return the columns of a row's group: its value, and where there are dimensions the number of theirs.

        The dimensions are compared by the engine, as the predicate of a slice compares them: `true` is no text there.
        """
        if not (self.slices and self.slices[0].fixed):
            return [self.expression(spelling)]
        number = self._by_dimensions(spelling, lambda fixed: str(self.numbers[fixed]))
        return [self.expression(spelling), number]

    @cached_property
    def numbers(self) -> dict[Fixed, int]:
        """The values of the dimensions, each with its number."""
        return {fixed: n for n, fixed in enumerate(dict.fromkeys(s.fixed for s in self.slices))}

    def finder(self) -> Callable[[Any, int | None], int | None]:
        """Return what tells the number of the slice to which a group belongs, by its value and its dimensions' number."""
        found: dict[int, list[tuple[Any, Any, int]]] = {}
        for number, slice_ in enumerate(self.slices):
            start, end = self._edges(slice_)
            found.setdefault(self.numbers[slice_.fixed], []).append((start, end, number))
        ordered = {key: sorted(edges) for key, edges in found.items()}
        firsts = {key: [start for start, _, _ in edges] for key, edges in ordered.items()}

        def place_of(value: Any, fixed: int | None) -> int | None:
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
        if self.by == "edges":
            start, end = self._bounds_of(slice_)
            return self._places[start], self._places[end]
        if self.by == "seconds":
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
) -> list[dict[str, Number]]:
    """Return the sums of `measures` (name to SQL aggregate) over `relation` for each slice, in one statement."""
    if not buckets.slices:
        return []
    spelling = session.spelling
    if len(buckets.slices) == 1:  # nothing to be told apart
        (found,) = session.fetch(
            f"SELECT {', '.join(measures.values())} FROM {relation}"
            f" WHERE {predicate(spelling, buckets.slices[0])}"
        )
        return [{name: value or 0 for name, value in zip(measures, found, strict=True)}]
    columns = buckets.groups(spelling)
    groups = session.fetch(
        f"SELECT {', '.join(columns)}, {', '.join(measures.values())} FROM {relation}"
        f" WHERE {buckets.condition(spelling)}{by_columns(spelling, columns)}"
    )
    sums = buckets.sums(groups, len(measures))
    return [dict(zip(measures, found, strict=True)) for found in sums]


def by_columns(spelling: Spelling, columns: Sequence[str]) -> str:
    """Return the GROUP BY of the first columns; nothing where none of them is of a row."""
    by = grouped(spelling, columns)
    return f" GROUP BY {by}" if by else ""


def _seconds(column: SliceColumn, window: Window) -> tuple[float, float]:
    """Return the window's edges as the column's own clock counts seconds since 1970."""
    start, end = (
        bound.replace(tzinfo=timezone.utc) if bound.tzinfo is None else bound
        for bound in column.bounds(window)
        if isinstance(bound, datetime)
    )
    return start.timestamp(), end.timestamp()
