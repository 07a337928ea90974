"""What a report says, as plain values: lines of partitions, tables, totals, and the headline they add up to.

Nothing here reads anything; `gathering` fills it, `markdown` and `html` show it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal

Outcome = Literal[
    "done", "skipped", "refused", "failed", "cancelled", "not reached", "running", "waiting"
]
Level = Literal["green", "amber", "red"]
CheckResult = Literal["passed", "warned", "failed", "not run", "running"]

BAD: tuple[Outcome, ...] = ("failed", "refused", "cancelled", "not reached")
GOING: tuple[Outcome, ...] = ("running", "waiting")
SUCCESS = ("COMPLETED_SUCCESS", "COMPLETED")


@dataclass(frozen=True)
class Check:
    """The latest result of one asset check on one partition (or, with partition None, on the whole table)."""

    name: str
    result: CheckResult
    said: str = ""


@dataclass(frozen=True)
class Line:
    """One planned partition. Rows are None where nobody knows them; `off` is a count beyond what the table tolerates."""

    partition: str
    outcome: Outcome
    why: str = ""
    before: int | None = None
    after: int | None = None
    source: int | None = None
    explained: tuple[str, ...] = ()
    checks: tuple[Check, ...] = ()
    seconds: float | None = None
    cost: float | None = None
    run_id: str | None = None
    off: bool = False
    rightly_empty: bool = False

    @property
    def difference(self) -> int | None:
        """Rows after minus rows before."""
        if self.before is None or self.after is None:
            return None
        return self.after - self.before

    @property
    def is_wrong(self) -> bool:
        """Whether somebody has to do something about it."""
        return self.outcome in BAD or any(check.result == "failed" for check in self.checks)


@dataclass(frozen=True)
class Totals:
    """Sums over lines; None where no line knows the number."""

    before: int | None
    after: int | None
    source: int | None
    difference: int | None
    seconds: float | None
    cost: float | None

    @classmethod
    def of(cls, lines: Sequence[Line]) -> Totals:
        """Return the sums."""

        def total(name: str):
            known = [value for line in lines if (value := getattr(line, name)) is not None]
            return sum(known) if known else None

        return cls(
            *(
                total(name)
                for name in ("before", "after", "source", "difference", "seconds", "cost")
            )
        )


@dataclass(frozen=True)
class TableReport:
    """The planned partitions of one table, in their order; `notes` say what could not be found out, and why."""

    name: str
    asset: str
    lines: tuple[Line, ...]
    checks: tuple[Check, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def totals(self) -> Totals:
        return Totals.of(self.lines)


@dataclass(frozen=True)
class FailedRun:
    """A run that failed and that no later one has made good."""

    run_id: str
    partitions: str
    why: str


@dataclass(frozen=True)
class Report:
    """One backfill; times are aware and UTC. `status` is Dagster's word, which is never enough.

    `attributed` is the cost by the warehouse's own books, in the engine's unit; None where it is not told, or not yet.
    `launch_with` is how a terminal finds the location.
    """

    backfill: str
    status: str
    has_ended: bool
    tables: tuple[TableReport, ...]
    made_at: datetime
    created: datetime | None = None
    ended: datetime | None = None
    title: str = ""
    reason: str = ""
    by: str = ""
    runs: Counter[str] = field(default_factory=Counter, hash=False)
    failed_runs: tuple[FailedRun, ...] = ()
    error: str = ""
    paused: str = ""
    attributed: float | None = None
    launch_with: str = "-w workspace.yaml"

    @property
    def lines(self) -> Iterator[tuple[TableReport, Line]]:
        """Every line with its table."""
        return ((table, line) for table in self.tables for line in table.lines)

    @property
    def counted(self) -> Counter[str]:
        """How many partitions came to each outcome."""
        return Counter(line.outcome for _, line in self.lines)

    @property
    def checked(self) -> Counter[str]:
        """How many checks came to each result."""
        of_lines = [check.result for _, line in self.lines for check in line.checks]
        return Counter(of_lines + [c.result for table in self.tables for c in table.checks])

    @property
    def totals(self) -> Totals:
        """The sums over all tables."""
        return Totals.of([line for _, line in self.lines])

    @property
    def wrong(self) -> int:
        """How many partitions are not as they should be."""
        return sum(line.is_wrong for _, line in self.lines)

    @property
    def off(self) -> int:
        """How many partitions hold another number of rows than their source, beyond what is tolerated."""
        return sum(line.off for _, line in self.lines)

    @property
    def left(self) -> bool:
        """Whether anything is left for a resume."""
        return any(line.outcome in BAD for _, line in self.lines) or bool(self.failed_runs)

    @property
    def problems(self) -> list[str]:
        """What is wrong, in words, worst first."""
        counted, found = self.counted, []
        failed_checks = self.checked["failed"]
        for number, one, many in (
            (len(self.failed_runs), "run failed", "runs failed"),
            (failed_checks, "check failed", "checks failed"),
            *((counted[name], _one(name), _many(name)) for name in BAD),
        ):
            if number:
                found.append(f"{number:,} {one if number == 1 else many}")
        return [*found, *([f"Dagster could not go on: {self.error}"] if self.error else [])]

    @property
    def level(self) -> Level:
        """Red where something is wrong, amber where something is to be looked at or awaited, else green."""
        if self.problems:
            return "red"
        unsure = self.off or self.checked["warned"] or not any(table.lines for table in self.tables)
        return "amber" if unsure or not self.has_ended else "green"

    @property
    def headline(self) -> str:
        """The truth in a sentence or two: of partitions, runs and checks, whatever Dagster calls the backfill."""
        counted = self.counted
        total, going = sum(counted.values()), sum(counted[name] for name in GOING)
        parts: list[str] = []
        if not self.has_ended:
            parts.append(
                f"Still running, so this is an interim report: {counted['done']:,} of {total:,} partitions"
                f" are done, {going:,} are under way or waiting."
            )
        if self.problems:
            told = ", ".join(self.problems)
            lead = f"Dagster says {self.status}, and yet " if self.status in SUCCESS else ""
            parts.append(f"{lead}{told}." if lead else f"{told[0].upper()}{told[1:]}.")
        if self.has_ended and not total:
            parts.append("No planned partition could be found.")
        elif self.has_ended:
            parts.append(self._done(counted, total))
        if self.off:
            parts.append(
                f"{self.off:,} {'holds' if self.off == 1 else 'hold'} another number of rows than the source has"
                " now, beyond what is tolerated."
            )
        if self.checked["warned"]:
            warned = self.checked["warned"]
            parts.append(f"{warned:,} {'check warns' if warned == 1 else 'checks warn'}.")
        return " ".join(parts)

    def _done(self, counted: Counter[str], total: int) -> str:
        done, skipped = counted["done"], counted["skipped"]
        empty = sum(line.rightly_empty for _, line in self.lines)
        all_of = f"All {total:,} partitions are" if total > 1 else "The one partition is"
        told = (
            f"{all_of} done"
            if done == total
            else f"Of {total:,} partitions {done:,} {_be(done)} done"
        )
        told += f", {skipped:,} {_be(skipped, past=True)} left alone" if skipped else ""
        return f"{told}; {empty:,} of them rightly empty." if empty else f"{told}."


def _be(number: int, *, past: bool = False) -> str:
    return ("was" if number == 1 else "were") if past else ("is" if number == 1 else "are")


def _one(outcome: str) -> str:
    return f"partition was {outcome}" if outcome != "failed" else "partition failed"


def _many(outcome: str) -> str:
    return f"partitions were {outcome}" if outcome != "failed" else "partitions failed"
