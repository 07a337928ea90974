"""What one side's days are, in one statement for many of them: rows, a sum of row hashes, and sums of measures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Literal

from backfill_assets.checks.by_slice import Buckets, by_columns
from backfill_assets.engines.protocol import Session, Spelling
from backfill_assets.engines.sql import predicate, quoted, summed
from backfill_assets.slice import Slice
from backfill_assets.strategies.dual_write import Side
from backfill_assets.strategies.reconcile.canonical import as_text, row_text
from backfill_assets.strategies.reconcile.columns import Compared, Value, hashes
from backfill_assets.strategies.reconcile.day import Mark

Which = Literal["old", "new"]
# a day, an hour, and the quarter of one that some zones are apart
_STEPS = (86_400, 3_600, 900)


@dataclass(frozen=True)
class Marked:
    """One side as it is read: its rows of any slice, and the hash of each."""

    session: Session
    side: Side
    compared: Compared
    which: Which

    @property
    def spelling(self) -> Spelling:
        """How its warehouse writes SQL."""
        return self.session.spelling

    @property
    def relation(self) -> str:
        """What stands behind FROM."""
        return self.side.relation(self.spelling)

    def values(self) -> list[Value]:
        """Return its columns, as they are compared."""
        return [getattr(column, self.which) for column in self.compared.columns]

    def hash(self, *, key_only: bool = False) -> str:
        """Return the SQL of a row's hash, as a number."""
        columns = self.compared.key if key_only else self.compared.columns
        values: list[Value] = [getattr(column, self.which) for column in columns]
        own = self.spelling.row_text_hash
        if self.compared.alike and not key_only and not own:
            return hashes(self.spelling, values)
        pairs = zip(columns, values, strict=True)
        row = row_text(self.spelling, [(c.family, self._text(c.family, v)) for c, v in pairs])
        # two engines need one hash; one engine may take its own
        within = own if self.compared.alike and not key_only else self.spelling.text_number
        return within.format(text=row)

    def _text(self, family: str, value: Value) -> str:
        if not self.compared.alike:
            return value.hashed
        if family == "float":
            return as_text(self.spelling, family, value.kind, value.sent)
        return value.hashed if value.kind == self.spelling.text_type else value.sent

    def total(self) -> str:
        """Return the SQL of the sum of the hashes of all rows, as text."""
        return self.spelling.hash_sum.format(hash=self.hash())

    def cut(self, slice_: Slice) -> Slice:
        """Return the same window of this side's table."""
        return Slice(self.side.table, slice_.window, slice_.fixed, slice_.partition)


def marks_of(side: Marked, slices: Sequence[Slice]) -> list[Mark]:
    """Return the mark of each slice, in order."""
    if not slices:
        return []
    spelling = side.spelling
    own = [side.cut(slice_) for slice_ in slices]
    names = [name for name, _, _ in side.compared.measures]
    place = 1 if side.which == "old" else 2
    sums = [summed(spelling, measure[place]) for measure in side.compared.measures]
    asked = ", ".join(["count(*)", side.total(), *sums])
    if len(own) == 1:
        found = side.session.fetch(
            f"SELECT {asked} FROM {side.relation} WHERE {predicate(spelling, own[0])}"
        )
        return [_mark(names, *(_number(value) for value in found[0]))]
    buckets = _buckets(own, spelling)
    columns = buckets.groups(spelling)
    groups = side.session.fetch(
        f"SELECT {', '.join(columns)}, {asked} FROM {side.relation}"
        f" WHERE {buckets.condition(spelling)}{by_columns(spelling, columns)}"
    )
    group = len(columns)
    numbers = [[*row[:group], *(_number(value) for value in row[group:])] for row in groups]
    return [_mark(names, *found) for found in buckets.sums(numbers, 2 + len(names))]


def _buckets(slices: Sequence[Slice], spelling: Spelling) -> Buckets:
    """Return the groups of rows; of instants by seconds, since to look up a zone for each row takes longer than its hash."""
    found = Buckets.of(slices, spelling)
    if found.by != "days" or found.column is None or found.column.kind != "timestamptz":
        return found
    edges = [e for s in slices if s.window is not None for e in (s.window.start, s.window.end)]
    for step in _STEPS:
        if all(edge.timestamp() % step == 0 for edge in edges):
            return Buckets(found.slices, found.column, "seconds", step)
    return found


def without_day(side: Marked) -> int:
    """Return how many rows of a side have no value in its slice column, and so belong to no day."""
    column = quoted(side.spelling, side.side.column.name)
    return int(
        side.session.fetch(f"SELECT count(*) FROM {side.relation} WHERE {column} IS NULL")[0][0]
    )


def _mark(names: Sequence[str], rows: Any, checksum: Any, *sums: Any) -> Mark:
    return Mark(
        int(rows), str(int(checksum)), {n: _decimal(s) for n, s in zip(names, sums, strict=True)}
    )


def _decimal(value: Any) -> Decimal:
    return Decimal(str(value)) if isinstance(value, float) else Decimal(value)


def _number(value: Any) -> Any:
    """Return a sum as a number: checksums come as text, and of no rows there is none."""
    return 0 if value is None else int(Decimal(value)) if isinstance(value, str) else value
