"""From facts to lines: what became of each planned partition, and why its rows differ from those before."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from backfill_assets.errors import without_secrets
from backfill_assets.expectations import RowCount
from backfill_assets.operations.reports.runs import Reason, RunFact, step_of_node
from backfill_assets.operations.reports.values import Check, Line, Outcome
from backfill_assets.operations.reports.warehouse import SliceFacts
from backfill_assets.slice import Slice
from backfill_assets.table import Table

Verdict = tuple[Outcome, str]


@dataclass
class Judge:
    """Judges the partitions of one asset in their order; remembers at which one each run stopped.

    `step` is the asset's step in its runs, `failures` what each failed run says. `was_cancelled` and `has_ended` are
    the backfill's.
    """

    step: str
    failures: Mapping[str, Sequence[Reason]]
    has_ended: bool
    was_cancelled: bool
    stopped: dict[str, str] = field(default_factory=dict[str, str])

    def verdict(self, name: str, facts: SliceFacts, run: RunFact | None) -> Verdict:
        """Return what became of the partition `name`, and why where that is not plain."""
        if facts.loads:
            return "done", ""
        if run is not None and run.goes_on:
            return ("waiting" if not run.began else "running"), ""
        if facts.attempt is not None:
            outcome: Outcome = "refused" if facts.attempt.outcome == "refused" else "failed"
            self.stopped.setdefault(facts.attempt.run_id, name)
            return outcome, facts.attempt_why or self._said(facts.attempt.run_id)
        if run is None:
            return self._without_run()
        if run.status == "SUCCESS":
            return _left_alone(facts)
        if run.status == "CANCELED":
            return "cancelled", "its run was cancelled"
        return self._failed(name, run)

    def remember(self, names: Sequence[str], facts: Sequence[SliceFacts]) -> None:
        """Note where runs stopped by what the audit says of it, before anything is judged."""
        for name, one in zip(names, facts, strict=True):
            if one.attempt is not None:
                self.stopped.setdefault(one.attempt.run_id, name)

    def _without_run(self) -> Verdict:
        if self.was_cancelled:
            return "cancelled", "the backfill was cancelled before a run came to it"
        if not self.has_ended:
            return "waiting", ""
        return "not reached", "no run of the backfill came to it"

    def _failed(self, name: str, run: RunFact) -> Verdict:
        if run.held:
            return "not reached", f"a pause stopped its run: {self._said(run.run_id)}"
        own = [r for r in self.failures.get(run.run_id, ()) if r.step is None or self._is_mine(r)]
        if not own and run.run_id in self.failures:
            return "not reached", f"its run failed before it: {self._said(run.run_id)}"
        at = self.stopped.setdefault(run.run_id, name) if run.began else name
        if at != name:
            return "not reached", f"its run stopped at {at}"
        refused = any(reason.refused for reason in own)
        return ("refused" if refused else "failed"), self._said(run.run_id)

    def _is_mine(self, reason: Reason) -> bool:
        return step_of_node(str(reason.step)) == self.step

    def _said(self, run: str) -> str:
        found = self.failures.get(run, ())
        mine = [reason.why for reason in found if self._is_mine(reason)]
        told = mine or [reason.why for reason in found]
        return told[0] if told else f"the page of run {run[:8]} tells why"


def line_of(
    table: Table | None,
    slice_: Slice | None,
    name: str,
    verdict: Verdict,
    facts: SliceFacts,
    run: RunFact | None,
    checks: tuple[Check, ...],
) -> Line:
    """Return the line of one partition; `table` and `slice_` are None where the warehouse could not be asked."""
    outcome, why = verdict
    before, after = _rows(outcome, facts)
    empty = bool(table and slice_ and after == 0 and table.empty_is_right(slice_.window))
    last = facts.loads[-1].load if facts.loads else facts.attempt
    run_id = last.run_id if last is not None else run.run_id if run is not None else None
    costs = [told.load.cost for told in facts.loads if told.load.cost is not None]
    return Line(
        partition=name,
        outcome=outcome,
        why=without_secrets(why),
        before=before,
        after=after,
        source=facts.source,
        explained=tuple(_explained(outcome, facts, after, empty)),
        checks=checks,
        seconds=sum(told.load.seconds for told in facts.loads) if facts.loads else None,
        cost=sum(costs) if costs else None,
        run_id=run_id,
        off=outcome in ("done", "skipped") and _is_off(table, after, facts.source),
        rightly_empty=empty and outcome in ("done", "skipped"),
    )


def _rows(outcome: Outcome, facts: SliceFacts) -> tuple[int | None, int | None]:
    """Return rows before the backfill's first load and after its last; what it left alone is as it was."""
    if facts.loads:
        return facts.loads[0].load.rows_before, facts.loads[-1].load.rows_after
    if facts.attempt is not None and facts.attempt.outcome == "intended":
        return None, None  # nobody knows yet what is there
    if outcome in ("skipped", "refused", "failed", "cancelled", "not reached") and facts.other:
        return facts.other.rows_after, facts.other.rows_after
    return None, None


def _left_alone(facts: SliceFacts) -> Verdict:
    other = facts.other
    if other is None:
        return "done", "Dagster has materialized it, and the audit has no row of it"
    whose = f"backfill {other.backfill_id}" if other.backfill_id else f"run {other.run_id[:8]}"
    return "skipped", f"{whose} committed it at {other.committed_at:%Y-%m-%d %H:%M} UTC; left alone"


def _explained(outcome: Outcome, facts: SliceFacts, after: int | None, empty: bool) -> list[str]:
    found: list[str] = []
    if facts.loads:
        first, last = facts.loads[0], facts.loads[-1].load
        if first.run_before is None:
            found.append("first load")
        else:
            if facts.late:
                found.append(f"late rows: {facts.late}")
            if first.code_before != last.code_version:
                found.append("changed rule")
            if first.checksum_before == last.checksum:
                found.append("unchanged")
    if empty:
        found.append("rightly empty")
    if outcome == "done" and after is not None and facts.source not in (None, after):
        found.append(f"{_amount(after - int(facts.source or 0))} than the source")
    return found


def _amount(difference: int) -> str:
    return f"{abs(difference):,} {'more' if difference > 0 else 'fewer'}"


def _is_off(table: Table | None, after: int | None, source: int | None) -> bool:
    """Tell whether the rows differ from the source's by more than the table tolerates.

    A declared source without a `RowCount` is no promise of a row for each of its rows; the query of an asset is (1 %).
    """
    if table is None or after is None or source is None:
        return False
    rules: list[Any] = [r for r in table.expects if isinstance(r, RowCount)]
    rule = next((r for r in rules if r.against == "source"), None)
    if rule is None and table.source is not None:
        return False
    rule = rule or RowCount()
    return abs(after - source) > max(rule.tolerance * source, rule.absolute)
