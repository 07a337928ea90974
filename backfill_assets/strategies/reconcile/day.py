"""What came of comparing one day of both sides; frozen values, as they are stored and shown."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from typing import Literal

Verdict = Literal["equal", "within", "differs", "missing"]
Kind = Literal["only_old", "only_new", "differs"]


@dataclass(frozen=True)
class Mark:
    """One day of one side: its rows, their order-independent hash (as text), and the sum of each measure."""

    rows: int
    checksum: str
    sums: Mapping[str, Decimal] = field(default_factory=dict[str, Decimal])


@dataclass(frozen=True)
class DayCompared:
    """One day: `old.rows == equal + differing + only_old` and `new.rows == equal + differing + only_new`.

    `verdict`: `equal`; `within` the threshold; `differs`; `missing` where one side has no rows and the other has.
    `columns` counts in how many differing rows each column differs. `compared_at` is aware, UTC, the warehouse's
    clock before the first row was read.
    """

    migration: str
    partition_key: str
    window_start: datetime
    window_end: datetime
    old: Mark
    new: Mark
    only_old: int
    only_new: int
    differing: int
    equal: int
    columns: Mapping[str, int]
    verdict: Verdict
    fingerprint: str
    run_id: str
    compared_at: datetime

    @property
    def share(self) -> float:
        """The share of rows that are on one side only, or differ, in the larger side; 0 where there are none."""
        wrong = self.only_old + self.only_new + self.differing
        return wrong / max(self.old.rows, self.new.rows, 1)

    @property
    def is_quiet(self) -> bool:
        """Whether the day counts for the streak."""
        return self.verdict in ("equal", "within")


@dataclass(frozen=True)
class KeyFound:
    """A key whose rows differ: values as text by column, None for NULL; empty on the side that lacks the row."""

    migration: str
    partition_key: str
    kind: Kind
    key: Mapping[str, str | None]
    old: Mapping[str, str | None]
    new: Mapping[str, str | None]
    columns: tuple[str, ...]
    copies: int = 1
