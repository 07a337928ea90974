"""Was every day right? Judged by SQL of its own over source and target, not by what the write path says."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from backfill_assets.engines import Session


@dataclass(frozen=True)
class Day:
    """One partition: what the audit says it held before, what it holds, and what the source says it should."""

    partition: str
    before: int | None
    after: int
    source: int
    after_sum: Any
    source_sum: Any

    @property
    def verdict(self) -> str:
        if self.before is None:
            return "WRONG: no audit row of this backfill"
        if self.after != self.source:
            return f"WRONG: {self.after - self.source:+} rows"
        return (
            "ok"
            if self.after_sum == self.source_sum
            else f"WRONG: sum {self.after_sum}, not {self.source_sum}"
        )

    @property
    def is_right(self) -> bool:
        return self.verdict == "ok"


def judge(
    session: Session, table: str, backfill: str, partitions: list[str], after: str, source: str
) -> list[Day]:
    """Return a verdict on each partition.

    `after` and `source` are queries of (partition, rows, sum) over the target and the source.
    """
    before = dict(
        session.fetch(
            "SELECT partition_key, max(rows_before) FROM backfill.load_audit"
            f" WHERE table_name = '{table}' AND backfill_id = '{backfill}' AND outcome = 'committed' GROUP BY 1"
        )
    )
    found = {str(key): (rows, total) for key, rows, total in session.fetch(after)}
    wanted = {str(key): (rows, total) for key, rows, total in session.fetch(source)}
    nothing = (0, Decimal(0))
    return [
        Day(key, before.get(key), *_pair(found.get(key, nothing), wanted.get(key, nothing)))
        for key in partitions
    ]


def _pair(found: tuple[int, Any], wanted: tuple[int, Any]) -> tuple[int, int, Any, Any]:
    return found[0], wanted[0], found[1], wanted[1]
