"""What an asset may return beside a frame and a `Select`, and what it may take as an input that stays put."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from backfill_assets.engines import Report
from backfill_assets.io_managers.sessions import Sessions
from backfill_assets.slice import Slice
from backfill_assets.writing.run import Run


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
class Made:
    """The rows of a slice (pandas, arrow), and what their source tells of them.

    `read_at` (aware) is when the source was read, or its ends were fixed. `told` is kept on the audit row and shown with
    the materialization: plain values, as JSON has them.
    """

    rows: Any
    read_at: datetime
    told: Mapping[str, Any] = field(default_factory=dict[str, Any], hash=False)


@dataclass(frozen=True)
class Opened:
    """A source that was read for several slices: `compute` gives those in `slices`, the order in which they are written."""

    slices: Sequence[Slice]
    compute: Callable[[Slice], Made]


@dataclass(frozen=True)
class PerRange:
    """What reads its source once for all slices of a run, and only for those that are left to write.

    `open` is given them, the run, the warehouse's session and the run's log, after the gate has let the first one in;
    what it returns is open until the last slice is written. `strategy` is what the audit calls it.
    """

    open: Callable[[Sequence[Slice], Run, Sessions, Report], AbstractContextManager[Opened]]
    strategy: str = "replay"


@dataclass(frozen=True)
class Relation:
    """An upstream asset's partitions as SQL: nothing is loaded. Formats as a parenthesised subquery.

    `Select(f"SELECT ... FROM {sales} AS s")` reads it inside the warehouse.
    """

    sql: str

    def __str__(self) -> str:
        return f"({self.sql})"
