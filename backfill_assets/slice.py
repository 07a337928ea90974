"""A slice: one window of one table (and one value of each static dimension), replaced as a unit."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from backfill_assets.errors import DeclarationError
from backfill_assets.table import Table
from backfill_assets.window import Window

# the name of a slice that is all of its table
WHOLE = "(whole table)"


@dataclass(frozen=True)
class Slice:
    """What one transaction deletes and inserts again.

    `window` is None for a table that is replaced whole (or only by its dimensions).
    `fixed` holds (column, value) for every static dimension of the table.
    `partition` is the key as Dagster prints it, for messages and the audit.
    """

    table: Table
    window: Window | None = None
    fixed: tuple[tuple[str, str], ...] = ()
    partition: str | None = None

    def __post_init__(self) -> None:
        if self.window is not None:
            if self.table.slice_column is None:
                raise DeclarationError(
                    f"table {self.table.qualified} cannot be written by window",
                    "it declares no slice column, so a second run would not know what to delete",
                    "Declare the column that holds the time of a row (partition_expr in an asset's metadata)",
                )
            self.table.slice_column.bounds(self.window)  # refuses what cannot be compared
        if {column for column, _ in self.fixed} != set(self.table.dimensions):
            raise DeclarationError(
                f"the slice {self.label} cannot be cut",
                f"it gives {sorted(c for c, _ in self.fixed)} and the table's dimensions are {sorted(self.table.dimensions)}",
                "Give one value for each dimension of the table",
            )

    @property
    def label(self) -> str:
        """The slice as messages name it: `analytics.fct_orders 2026-05-12`."""
        return f"{self.table.qualified} {self.name}"

    @property
    def name(self) -> str:
        """The part of the label behind the table: Dagster's key, or the window, or `(whole table)`."""
        if self.partition:
            return self.partition
        zone = self.table.slice_column.zone if self.table.slice_column else "UTC"
        parts = [self.window.label(zone)] if self.window else []
        return "|".join([*parts, *(value for _, value in self.fixed)]) or WHOLE


def joined(slices: Iterable[Slice]) -> list[Slice]:
    """Join neighbouring windows of the same dimension values, so that a year is one condition and not 365."""
    found: list[Slice] = []
    for slice_ in slices:
        last = found[-1] if found else None
        if last and last.window and slice_.window and _touch(last, slice_):
            found[-1] = Slice(last.table, Window(last.window.start, slice_.window.end), last.fixed)
        else:
            found.append(slice_)
    return found


def _touch(last: Slice, next_: Slice) -> bool:
    return (
        last.fixed == next_.fixed
        and last.window is not None
        and next_.window is not None
        and last.window.end == next_.window.start
    )
