"""What an asset may return beside a frame and a `Select`, and what it may take as an input that stays put."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from backfill_assets.slice import Slice


@dataclass(frozen=True)
class PerSlice:
    """A function from one `Slice` to its rows (pandas, arrow or `Select`), called right before each is written.

    A run over a month then holds one day in memory, reads each day's source when its turn comes, and can stop
    between two days. `slice_.window.start` and `.end` are aware and UTC.
    Read the source inside the function: inputs and frames that it takes from around it count as read when the step
    began, and a slice that another run has written since is then refused.
    """

    compute: Callable[[Slice], Any]


@dataclass(frozen=True)
class Relation:
    """An upstream asset's partitions as SQL: nothing is loaded. Formats as a parenthesised subquery.

    `Select(f"SELECT ... FROM {sales} AS s")` reads it inside the warehouse.
    """

    sql: str

    def __str__(self) -> str:
        return f"({self.sql})"
