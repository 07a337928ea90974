"""Who rewrites, why, and what this run may do that others may not."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal, get_args

from backfill_assets.errors import DeclarationError

Lane = Literal["live", "backfill"]
Allowance = Literal[
    "empty", "shrink", "retention", "row_count", "totals", "duplicate_keys", "unfinished", "partial"
]


@dataclass(frozen=True)
class Run:
    """One launch, as the audit remembers it.

    `source_read_at` (aware, this machine's clock) is the moment before the source of a frame was read; None
    means now. A `Select` is read by the write path itself, which takes the time itself.
    `allows` names guards that this run may pass (`empty`, `shrink`, `retention`, `row_count`, `totals`,
    `duplicate_keys`, `unfinished`, `partial`, and `rule:name` for a rule of the table's own); each needs a `reason`.
    `detail` is kept on the audit row, as JSON.
    """

    run_id: str
    lane: Lane = "live"
    strategy: str = "recompute"
    backfill_id: str | None = None
    reason: str | None = None
    ticket: str | None = None
    launched_by: str | None = None
    code_version: str | None = None
    source_read_at: datetime | None = None
    allows: frozenset[str] = field(default_factory=frozenset[str])
    detail: str | None = None

    def __post_init__(self) -> None:
        own = {a for a in self.allows if a.startswith("rule:") and a[5:].isidentifier()}
        unknown = sorted(set(self.allows) - own - set(get_args(Allowance)))
        if unknown:
            raise DeclarationError(
                f"the run may not allow {unknown[0]!r}",
                "no guard has that name",
                f"Choose from {', '.join(get_args(Allowance))}, or rule:name for a rule of the table's own",
            )
        if self.allows and not (self.reason or "").strip():
            raise DeclarationError(
                f"the run may not pass the guard {', '.join(sorted(self.allows))}",
                "it gives no reason",
                "Add the run tag 'reason' with a sentence that will still make sense in a year",
            )
        if self.source_read_at is not None and self.source_read_at.tzinfo is None:
            raise DeclarationError(
                f"the source's read time {self.source_read_at.isoformat()} cannot be placed in time",
                "it has no time zone",
                "Give an aware datetime",
            )
