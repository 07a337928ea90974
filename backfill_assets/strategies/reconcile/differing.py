"""The rows of one day that differ, by key, inside one warehouse: both sides as multisets, without a join.

What both sides have is taken away, copy by copy; what is left over is paired within its key, and only then compared
column by column. So the sums add up whatever the rows are: NULL in keys, twins, copies in unlike numbers.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from backfill_assets.engines.protocol import Session, Spelling
from backfill_assets.engines.sql import first, summed
from backfill_assets.strategies.reconcile.columns import Column, Compared
from backfill_assets.strategies.reconcile.day import Kind

# half of the largest float: two of them can be subtracted, whatever their signs
_LARGEST, _SMALLEST = "8e307", "1e-290"
# beyond all decimals that are written down
_ENDLESS = "1e300"


@dataclass(frozen=True)
class Pair:
    """Some rows that differ alike, as texts."""

    kind: Kind
    key: dict[str, str | None]
    old: dict[str, str | None]
    new: dict[str, str | None]
    columns: tuple[str, ...]
    copies: int


@dataclass(frozen=True)
class Difference:
    """What is not on both sides alike: `left_old` and `left_new` rows, of which pairs `within` tolerance are equal."""

    left_old: int = 0
    left_new: int = 0
    only_old: int = 0
    only_new: int = 0
    differing: int = 0
    within: int = 0
    columns: dict[str, int] | None = None
    worst: tuple[Pair, ...] = ()


def difference(
    session: Session, compared: Compared, old_rows: str, new_rows: str, keep: int, measure: str | None
) -> Difference:  # fmt: skip
    """Compare two queries whose columns are `v0`, `v1` ... as those of `compared`; keep that many of the worst keys.

    `measure` is the column whose difference makes one worse than another.
    """
    return _Diff(session, compared, keep, measure).of(old_rows, new_rows)


class _Diff:
    """The statements of one comparison, and the stages that they leave until it is over."""

    def __init__(
        self, session: Session, compared: Compared, keep: int, measure: str | None
    ) -> None:
        self._session, self._spelling = session, session.spelling
        self._columns, self._keep, self._measure = compared.columns, keep, measure
        self._keys = [n for n, column in enumerate(self._columns) if column.is_key]
        self._rest = [n for n, column in enumerate(self._columns) if not column.is_key]
        self._stages = ExitStack()

    def of(self, old_rows: str, new_rows: str) -> Difference:
        with self._stages:
            left = self._staged(self._left_over(old_rows, new_rows))
            old, new, most = self._session.fetch(
                f"SELECT {self._total('CASE WHEN copies > 0 THEN copies ELSE 0 END')},"
                f" {self._total('CASE WHEN copies < 0 THEN -copies ELSE 0 END')}, coalesce(max(abs(copies)), 0) FROM {left}"
            )[0]
            if not most:
                return Difference()
            pairs = self._staged(self._flagged(self._paired(left, int(most))))
            return self._told(pairs, int(old), int(new))

    def _staged(self, query: str) -> str:
        name = f"backfill_stage_{uuid.uuid4().hex}"
        relation = self._session.stage_select(name, query)
        self._stages.callback(self._session.drop_stage, name)
        return relation

    def _left_over(self, old_rows: str, new_rows: str) -> str:
        """Return the rows that one side has more often than the other, and how much more often."""
        names = _listed("v", range(len(self._columns)))
        return (
            f"SELECT {names}, sum(side) AS copies FROM (SELECT {names}, 1 AS side FROM ({old_rows}) AS old_rows"
            f" UNION ALL SELECT {names}, -1 AS side FROM ({new_rows}) AS new_rows) AS both_sides"
            f" GROUP BY {names} HAVING sum(side) <> 0"
        )

    def _paired(self, left: str, most: int) -> str:
        """Return what is left over, each copy a row, the n-th of a key on one side beside the n-th on the other."""
        names = _listed("v", range(len(self._columns)))
        side = "CASE WHEN copies > 0 THEN 0 ELSE 1 END AS side"
        single = f"SELECT {names}, {side} FROM {left}"
        if most > 1:
            numbers = self._numbers(most)
            single += (
                f" WHERE abs(copies) = 1 UNION ALL SELECT {names}, {side} FROM {left} CROSS JOIN {numbers}"
                " WHERE abs(copies) > 1 AND n < abs(copies)"
            )
        keys = _listed("v", self._keys)
        order = _listed("v", self._rest) or keys
        numbered = (
            f"SELECT {names}, side, row_number() OVER (PARTITION BY side, {keys} ORDER BY {order}) AS place"
            f" FROM ({single}) AS copied"
        )
        values = [
            f"max(CASE WHEN side = {side} THEN v{n} END) AS {letter}{n}"
            for n in self._rest
            for side, letter in ((0, "o"), (1, "n"))
        ]
        sides = [f"max(CASE WHEN side = {n} THEN 1 ELSE 0 END) AS has_{n}" for n in (0, 1)]
        return (
            f"SELECT {keys}, {', '.join([*values, *sides])} FROM ({numbered}) AS numbered"
            f" GROUP BY {keys}, place"
        )

    def _numbers(self, most: int) -> str:
        import pyarrow as pa

        name = f"backfill_stage_{uuid.uuid4().hex}"
        relation = self._session.stage_arrow(name, pa.table({"n": pa.array(range(most))}))
        self._stages.callback(self._session.drop_stage, name)
        return relation

    def _flagged(self, paired: str) -> str:
        """Return the pairs, and of each column whether it differs beyond its tolerance."""
        flags = [f"{self._differs(n)} AS d{n}" for n in self._rest]
        return f"SELECT {', '.join(['paired.*', *flags])} FROM ({paired}) AS paired"

    def _differs(self, n: int) -> str:
        column, old, new = self._columns[n], f"o{n}", f"n{n}"
        beyond = "1"
        if column.tolerance.is_numeric and column.number is not None:
            beyond = beyond_tolerance(self._spelling, column, old, new)
        apart = self._spelling.differs.format(a=old, b=new)
        return (
            f"CASE WHEN has_0 + has_1 < 2 THEN 0 WHEN {apart} THEN coalesce({beyond}, 1) ELSE 0 END"
        )

    def _told(self, pairs: str, left_old: int, left_new: int) -> Difference:
        both, wrong = "has_0 + has_1 = 2", self._wrong()
        counted = [
            self._total("CASE WHEN has_1 = 0 THEN 1 ELSE 0 END"),
            self._total("CASE WHEN has_0 = 0 THEN 1 ELSE 0 END"),
            self._total(f"CASE WHEN {both} AND {wrong} THEN 1 ELSE 0 END"),
            self._total(f"CASE WHEN {both} AND NOT ({wrong}) THEN 1 ELSE 0 END"),
            *(self._total(f"d{n}") for n in self._rest),
        ]
        found = [
            int(v) for v in self._session.fetch(f"SELECT {', '.join(counted)} FROM {pairs}")[0]
        ]
        only_old, only_new, differing, alike, *by_column = found
        columns = {self._columns[n].name: by_column[i] for i, n in enumerate(self._rest)}
        return Difference(
            left_old, left_new, only_old, only_new, differing, alike,
            {name: count for name, count in columns.items() if count},
            tuple(self._worst(pairs)) if self._keep else (),
        )  # fmt: skip

    def _total(self, value: str) -> str:
        return f"coalesce({summed(self._spelling, value)}, 0)"

    def _wrong(self) -> str:
        return f"{' + '.join(f'd{n}' for n in self._rest)} > 0" if self._rest else "1 = 0"

    def _worst(self, pairs: str) -> list[Pair]:
        """Return the keys with the largest differences, rows that differ alike together."""
        keys = [f"v{n}" for n in self._keys]
        values = [f"{letter}{n}" for n in self._rest for letter in "on"]
        flags = [f"d{n}" for n in self._rest]
        names = ", ".join([*keys, *values, *flags, "has_0", "has_1"])
        grouped = (
            f"SELECT {names}, count(*) AS copies FROM {pairs}"
            f" WHERE has_0 + has_1 < 2 OR {self._wrong()} GROUP BY {names}"
        )
        shown = [self._shown(n, f"v{n}") for n in self._keys]
        shown += [self._shown(n, f"{letter}{n}") for n in self._rest for letter in "on"]
        order = ", ".join([*self._size(), *keys])
        rest = f"{', '.join([*shown, *flags, 'has_0', 'has_1', 'copies'])} FROM ({grouped}) AS found ORDER BY {order}"
        return [
            self._pair(row) for row in self._session.fetch(first(self._spelling, self._keep, rest))
        ]

    def _shown(self, n: int, value: str) -> str:
        return self._columns[n].shown.format(value=value)

    def _size(self) -> list[str]:
        """Return the order of the worst: by the size of the measure's difference."""
        for n in self._rest:
            column = self._columns[n]
            if column.name == self._measure and column.number is not None:
                wide = self._spelling.wide["float"]
                old, new = (f"coalesce(CAST({letter}{n} AS {wide}), 0)" for letter in "on")
                return [
                    f"CASE WHEN abs({old}) > {_LARGEST} OR abs({new}) > {_LARGEST} THEN {_LARGEST}"
                    f" ELSE abs({old} - {new}) END DESC"
                ]
        return []

    def _pair(self, row: Sequence[Any]) -> Pair:
        values = list(row)
        key = {self._columns[n].name: _text(values.pop(0)) for n in self._keys}
        sides: tuple[dict[str, str | None], dict[str, str | None]] = ({}, {})
        for n in self._rest:
            for side in sides:
                side[self._columns[n].name] = _text(values.pop(0))
        flags = {self._columns[n].name: int(values.pop(0)) for n in self._rest}
        has_old, has_new, copies = (int(value) for value in values)
        kind: Kind = "differs" if has_old and has_new else "only_old" if has_old else "only_new"
        old, new = (
            side if there else {} for side, there in zip(sides, (has_old, has_new), strict=True)
        )
        return Pair(
            kind, key, old, new, tuple(name for name, flag in flags.items() if flag), copies
        )


def beyond_tolerance(spelling: Spelling, column: Column, old: str, new: str) -> str:
    """Return the SQL that is 0 for two numbers that differ by no more than they may, and 1 for all others."""
    number = column.number or "{value}"
    wide = spelling.wide["float"]
    a, b = (f"CAST({value} AS {wide})" for value in (old, new))
    inexact = _beyond(column, a, b, _LARGEST)
    if not column.exactly:
        return inexact
    a, b = (number.format(value=value) for value in (old, new))
    return spelling.tried.format(value=_beyond(column, a, b, _ENDLESS), otherwise=inexact)


def _beyond(column: Column, a: str, b: str, largest: str) -> str:
    """Compare two numbers; what is endless is near to nothing but itself."""
    apart, parts = f"abs({a} - {b})", list[str]()
    if column.tolerance.absolute:
        parts.append(f"{apart} <= {_plain(column.tolerance.absolute)}")
    if column.tolerance.relative:
        share = _plain(column.tolerance.relative)
        # a share of the very smallest would be no float any more
        parts += [
            f"(abs({value}) > {_SMALLEST} AND {apart} <= {share} * abs({value}))"
            for value in (a, b)
        ]
    near = f"CASE WHEN {' OR '.join(parts)} THEN 0 ELSE 1 END"
    # of NULLs nothing is known, so that another way can be tried
    none = f"WHEN {a} IS NULL OR {b} IS NULL THEN NULL" if column.exactly else ""
    return (
        f"CASE WHEN abs({a}) <= {largest} AND abs({b}) <= {largest} THEN {near} {none} ELSE 1 END"
    )


def _plain(number: float) -> str:
    """Return a number without an exponent, which would make it a float."""
    return format(Decimal(repr(float(number))), "f")


def _listed(letter: str, places: Sequence[int]) -> str:
    return ", ".join(f"{letter}{n}" for n in places)


def _text(value: Any) -> str | None:
    return None if value is None else str(value)
