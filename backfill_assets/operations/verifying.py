"""What is wrong in a range of partitions: every check of each of them, and what Dagster and the table disagree about."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from backfill_assets.checks.verdicts import Verdict

# what no backfill mends
_NOT_BY_BACKFILL = ("schema",)
# verdicts that are kept with their sentences; all are counted
_KEPT = 5000


@dataclass(frozen=True)
class Wrong:
    """One failed check of one partition."""

    partition: str
    check: str
    severity: str
    expected: str
    found: str
    why: str
    sql: str


@dataclass
class Verified:
    """The result of a range: partitions in order, failed checks, and gaps by their kind."""

    table: str
    partitions: list[str] = field(default_factory=list[str])
    rows: int = 0
    wrong: list[Wrong] = field(default_factory=list[Wrong])
    failed: dict[str, int] = field(default_factory=dict[str, int])
    never_loaded: list[str] = field(default_factory=list[str])
    gone: list[str] = field(default_factory=list[str])
    unknown_to_dagster: list[str] = field(default_factory=list[str])
    to_backfill: list[str] = field(default_factory=list[str])

    @property
    def is_right(self) -> bool:
        """Whether no check failed."""
        return not self.failed

    def as_json(self) -> dict[str, Any]:
        """Return everything as plain values."""
        return {
            "table": self.table,
            "partitions": len(self.partitions),
            "rows": self.rows,
            "failed": self.failed,
            "never_loaded": self.never_loaded,
            "gone": self.gone,
            "unknown_to_dagster": self.unknown_to_dagster,
            "to_backfill": self.to_backfill,
            "wrong": [vars(wrong) for wrong in self.wrong],
        }


def verified(
    table: str, found: Iterable[Verdict], materialized: Sequence[str], *, from_first_load: bool
) -> Verified:
    """Sum up the verdicts of a range; `materialized` are the partitions that Dagster has a materialization of.

    `from_first_load` leaves out the partitions before the first one that has rows or was ever materialized.
    """
    known, result = set(materialized), Verified(table)
    by_slice: dict[str, list[Verdict]] = {}
    begun = not from_first_load
    for verdict in found:
        by_slice.setdefault(verdict.slice.name, []).append(verdict)
    for partition, verdicts in by_slice.items():
        rows = _rows(verdicts)
        begun = begun or rows > 0 or partition in known
        if begun:
            _add(result, partition, verdicts, rows, partition in known)
    return result


def _add(
    result: Verified, partition: str, verdicts: Sequence[Verdict], rows: int, known: bool
) -> None:
    result.partitions.append(partition)
    result.rows += rows
    for verdict in verdicts:
        if not verdict.passed:
            result.failed[verdict.check] = result.failed.get(verdict.check, 0) + 1
            if len(result.wrong) < _KEPT:
                result.wrong.append(_wrong(partition, verdict))
    failed = {verdict.check for verdict in verdicts if not verdict.passed}
    if rows == 0 and "missing_partitions" in failed:
        (result.gone if known else result.never_loaded).append(partition)
    if rows > 0 and not known:
        result.unknown_to_dagster.append(partition)
    if failed - set(_NOT_BY_BACKFILL):
        result.to_backfill.append(partition)


def _rows(verdicts: Sequence[Verdict]) -> int:
    for verdict in verdicts:
        if verdict.check == "missing_partitions" and verdict.findings[0].found is not None:
            return int(verdict.findings[0].found)
    return 0


def _wrong(partition: str, verdict: Verdict) -> Wrong:
    worst = verdict.worst
    expected, found = ("" if n is None else str(n) for n in (worst.expected, worst.found))
    return Wrong(
        partition, verdict.check, verdict.severity, expected, found, verdict.why, verdict.sql
    )
