"""A `Source` as SQL: a relation to count and sum, cut into the same slices as the table that it is compared with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast
from weakref import WeakKeyDictionary

from backfill_assets.engines.protocol import Session
from backfill_assets.engines.sql import first
from backfill_assets.errors import DeclarationError
from backfill_assets.expectations import Source
from backfill_assets.slice import Slice
from backfill_assets.table import SliceColumn, SliceKind, Table
from backfill_assets.writing.fit import family, folded, holds_kind, may_be_either

_found: WeakKeyDictionary[Session, dict[tuple[Table, Source], Reference]] = WeakKeyDictionary()


@dataclass(frozen=True)
class Reference:
    """Rows to compare with: `relation` goes behind FROM, `slices` are its own for those of the table."""

    relation: str
    table: Table

    def slices(self, of: Sequence[Slice]) -> list[Slice]:
        """Return the slices of the source that have the windows, dimensions and names of those given."""
        return [Slice(self.table, slice_.window, slice_.fixed, slice_.name) for slice_ in of]


def reference(session: Session, table: Table, source: Source) -> Reference:
    """Return `source` as `table` is compared with it; raise where it lacks a column or holds time otherwise than said.

    Asked once a session. A relation that is not there raises `MissingTable`.
    """
    found = _found.setdefault(session, {})
    if (table, source) not in found:
        found[table, source] = _reference(session, table, source)
    return found[table, source]


def _reference(session: Session, table: Table, source: Source) -> Reference:
    relation = f"(\n{source.query}\n) AS source_rows"
    columns = session.columns_of(relation)
    if columns is None:
        session.fetch(
            first(session.spelling, 0, f"* FROM {relation}")
        )  # let the engine say what is not there
        columns = {}
    needed = [source.on, *table.dimensions, *([source.ingested_at] if source.ingested_at else [])]
    there = {folded(name, session.spelling): kind for name, kind in columns.items()}
    for name in needed:
        if folded(name, session.spelling) not in there:
            raise _wrong(
                table,
                f"its source has no column {name!r}, only {', '.join(map(repr, list(columns)[:12])) or 'none'}",
                "Correct the Source: it is compared by columns of its own result",
            )
    actual = there[folded(source.on, session.spelling)]
    kind, zone = source.on_kind, table.slice_column.zone if table.slice_column else "UTC"
    holds = family(actual, session.spelling)
    either = may_be_either(holds, source.on_zone or zone, session.spelling)
    if kind is None and holds in ("date", "timestamp", "timestamptz") and not either:
        kind = holds
    if kind is None or not holds_kind(cast("SliceKind", kind), holds, session.spelling):
        raise _wrong(
            table,
            f"column {source.on!r} of its source is to hold {kind or 'a time'} and holds {actual}",
            "Give on_kind (and on_zone) of the Source as the column really is",
        )
    column = SliceColumn(source.on, cast("SliceKind", kind), source.on_zone or zone)
    return Reference(relation, Table("source_rows", column, dimensions=table.dimensions))


def _wrong(table: Table, why: str, do: str) -> DeclarationError:
    return DeclarationError(f"{table.qualified} cannot be compared with its source", why, do)
