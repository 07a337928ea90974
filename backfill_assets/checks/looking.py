"""Each check over some slices whose facts are known.

A check that cannot be asked has failed: an error is never a pass.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property, partial

from backfill_assets.checks.facts import (
    Counted,
    Facts,
    against,
    together_or_alone,
)
from backfill_assets.checks.hours import missing_hours
from backfill_assets.checks.own_rules import asked_together
from backfill_assets.checks.samples import Samples
from backfill_assets.checks.schema import schema_problems
from backfill_assets.checks.verdict import Verdict
from backfill_assets.engines import Session
from backfill_assets.engines.sql import predicate, qualified
from backfill_assets.errors import BackfillError
from backfill_assets.expectations import NoRows, RowCount, Severity, Totals
from backfill_assets.slice import Slice
from backfill_assets.table import Table
from backfill_assets.writing import Load
from backfill_assets.writing.audit import key_of
from backfill_assets.writing.expecting import (
    Finding,
    Number,
    allowance,
    broken_rows,
    compared,
)


@dataclass(frozen=True)
class Look:
    """The checks over some slices whose facts are known."""

    session: Session
    table: Table
    slices: Sequence[Slice]
    facts: Facts
    now: datetime

    def all(self, check: str) -> list[Verdict]:
        """Return the verdicts of one check, one for each slice."""
        rule = self.table.rule(check)
        found: Callable[[int], list[Finding]]
        if rule is not None:
            found = self._own(rule)
        else:
            found = {
                "row_count": self._row_count,
                "missing_partitions": self._missing(),
                "schema": self._schema,
                "duplicate_keys": self._duplicate_keys,
                "totals": self._totals,
                "late_rows": self._late_rows,
            }[check]
        samples = Samples(self.session, self.table)
        return [
            self._verdict(check, place, found(place), samples) for place in range(len(self.slices))
        ]

    def _verdict(
        self, check: str, place: int, findings: list[Finding], samples: Samples
    ) -> Verdict:
        slice_, sql = self.slices[place], self._queries[place]
        load = self.facts.loads.get(key_of(slice_))
        since = self.facts.read_at[place] if self.facts.read_at else None
        if load is not None and allowance(check) in load.allowed:
            # what the last load left is no matter of what it was allowed to
            own = 1 if check == "row_count" else 0
            findings = [*findings[:own], *(_allowed(one, load) for one in findings[own:])]
        verdict = Verdict(check, slice_, tuple(findings), sql, since=since)
        return verdict if verdict.passed else samples.shown(verdict)

    def _row_count(self, place: int) -> list[Finding]:
        counted = self._counted(place)
        if isinstance(counted, BackfillError):
            return [_not_asked("row_count", counted)]
        load = self.facts.loads.get(key_of(self.slices[place]))
        exact = RowCount(against="last_load", tolerance=0)
        left = load.rows_after if load else None
        found = [compared(exact, "rows", left, counted.rows, "the last load")]
        for rule in self.table.expects:
            if isinstance(rule, RowCount):
                found.append(self._against(rule, "rows", place, counted.rows))
        return found

    def _totals(self, place: int) -> list[Finding]:
        counted = self._counted(place)
        if isinstance(counted, BackfillError):
            return [_not_asked("totals", counted)]
        rules = [rule for rule in self.table.expects if isinstance(rule, Totals)]
        return [
            self._against(rule, name, place, counted.sums[name], counted.scales.get(name, 0.0))
            for rule in rules
            for name in rule.measures
        ]

    def _against(
        self,
        rule: RowCount | Totals,
        about: str,
        place: int,
        found: Number,
        scale: float = 0.0,
    ) -> Finding:
        try:
            expected, whose = against(self.facts, self.slices[place], place, rule, about)
        except BackfillError as error:
            return _not_asked(rule.name, error, rule.severity)
        return compared(rule, about, expected, found, whose, scale=scale)

    def _duplicate_keys(self, place: int) -> list[Finding]:
        counted, severity = self._counted(place), self.table.duplicate_keys
        if isinstance(counted, BackfillError):
            return [_not_asked("duplicate_keys", counted, severity)]
        twins = counted.rows - (counted.keys or 0)
        key = ", ".join(self.table.unique_key)
        why = (
            f"{twins} of {counted.rows:,} rows repeat a value of the unique key ({key})"
            if twins
            else f"{counted.rows:,} rows have as many values of the unique key ({key})"
        )
        return [Finding("duplicate_keys", "keys", 0, twins, 0, twins == 0, severity, why)]

    def _missing(self) -> Callable[[int], list[Finding]]:
        hours = missing_hours(self.session, self.table, self.slices, self.facts, self.now)

        def found(place: int) -> list[Finding]:
            counted, slice_ = self._counted(place), self.slices[place]
            if isinstance(counted, BackfillError):
                return [_not_asked("missing_partitions", counted)]
            named = partial(Finding, "missing_partitions", "rows", None, counted.rows, 0)
            if not counted.rows:
                excuse = self._excuse(slice_)
                why = excuse or "there is no row, and an empty slice is not declared to be right"
                return [named(excuse is not None, "block", why)]
            if isinstance(hours, BackfillError):
                return [_not_asked("missing_partitions", hours)]
            if lacking := hours.get(place):
                shown = ", ".join(f"{hour:02}:00" for hour in lacking)
                return [named(False, "block", f"no row of the hours {shown}")]
            return [
                named(True, "block", f"{counted.rows:,} rows are there"),
                *self._unfinished(slice_),
            ]

        return found

    def _excuse(self, slice_: Slice) -> str | None:
        """Return why a slice may be empty now, None when it may not."""
        if slice_.window is not None and slice_.window.end > self.now:
            return "there is no row yet, and the slice is not over"
        if self.table.empty_is_expected(slice_.window):
            return "there is no row, and none is expected on such a day"
        load = self.facts.loads.get(key_of(slice_))
        if load is not None and load.rows_after == 0 and not self._unfinished(slice_):
            return f"there is no row, and run {load.run_id[:8]} found none in the source" + (
                f" ({load.reason})" if load.reason else ""
            )
        return None

    def _unfinished(self, slice_: Slice) -> list[Finding]:
        """Return a warning where the source was last read before the slice was over, and never again."""
        load, window = self.facts.loads.get(key_of(slice_)), slice_.window
        if load is None or window is None or not load.source_read_at < window.end <= self.now:
            return []
        read = load.source_read_at.isoformat(timespec="seconds")
        why = f"its source was last read at {read}, before the slice was over"
        return [Finding("missing_partitions", "rows", None, None, 0, False, "warn", why)]

    def _late_rows(self, place: int) -> list[Finding]:
        source = self.table.source
        assert source is not None
        theirs = self.facts.late_problem or self.facts.sources[source]
        counted = theirs if isinstance(theirs, BackfillError) else theirs[place]
        if isinstance(counted, BackfillError):
            return [_not_asked("late_rows", counted, "warn")]
        late, since = counted.late or 0, self.facts.read_at[place]
        if since is None:
            why = "the slice was never loaded, so that no row can be late for it"
        else:
            read = since.isoformat(timespec="seconds")
            why = f"{late:,} rows reached the source after it was read at {read}"
        return [Finding("late_rows", "rows", 0, late, 0, late == 0, "warn", why)]

    def _schema(self, place: int) -> list[Finding]:
        problems = self._schema_problems
        why = "; ".join(problems) or "the columns are those that are declared"
        return [Finding("schema", "columns", 0, len(problems), 0, not problems, "block", why)]

    def _own(self, rule: NoRows) -> Callable[[int], list[Finding]]:
        """Ask a rule of each slice alone, all in one statement; where one cannot be asked, the others still are."""
        if self.facts.columns is None:
            return lambda _: [_broken(rule, 0)]

        def ask(places: Sequence[int]) -> list[int]:
            rows = {place: self._queries[place] for place in places}
            asked = asked_together(self.session.spelling, rule, rows)
            if asked is None:
                return [broken_rows(self.session, rule, query) for query in rows.values()]
            found = dict(self.session.fetch(asked))
            return [int(found[place]) for place in places]

        counts = together_or_alone(ask, len(self.slices))

        def found(place: int) -> list[Finding]:
            count = counts[place]
            if isinstance(count, BackfillError):
                return [_not_asked(rule.name, count, rule.severity)]
            return [_broken(rule, count)]

        return found

    @cached_property
    def _queries(self) -> list[str]:
        spelling = self.session.spelling
        relation = qualified(spelling, self.table)
        return [f"SELECT * FROM {relation} WHERE {predicate(spelling, s)}" for s in self.slices]

    @cached_property
    def _schema_problems(self) -> list[str]:
        return schema_problems(self.session, self.table, self.facts.columns)

    def _counted(self, place: int) -> Counted | BackfillError:
        table = self.facts.table
        return table if isinstance(table, BackfillError) else table[place]


def _broken(rule: NoRows, count: int) -> Finding:
    why = f"{count:,} rows break the rule" if count else "no row breaks the rule"
    return Finding(rule.name, "rows", 0, count, 0, count == 0, rule.severity, why)


def _allowed(finding: Finding, load: Load) -> Finding:
    """Return a finding that the run which wrote the slice was allowed to pass: told, and blocking nothing."""
    if finding.passed:
        return finding
    why = f"{finding.why} (run {load.run_id[:8]} was allowed to: {load.reason})"
    return replace(finding, severity="warn", allowed=True, why=why)


def _not_asked(check: str, error: BackfillError, severity: Severity = "block") -> Finding:
    return _failed(check, severity, f"it could not be asked ({error.what}: {error.why})")


def _failed(check: str, severity: Severity, why: str) -> Finding:
    return Finding(check, "rows", None, None, 0, passed=False, severity=severity, why=why)
