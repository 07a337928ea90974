"""What became of each partition of a dbt run, by the audit: materializations, checks, or the sentence that stopped it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import dagster as dg

from backfill_assets.engines import Session
from backfill_assets.engines.sql import text
from backfill_assets.errors import BackfillError, WriteFailed
from backfill_assets.io_managers.check_results import (
    CheckFound,
    evaluation,
    newest_materializations,
)
from backfill_assets.io_managers.partitions import Target
from backfill_assets.io_managers.reporting import closing_failed, keep, metadata_of_load, stopped
from backfill_assets.slice import Slice
from backfill_assets.writing import AuditTable, Load

_LONGEST = 600
_KILLED = "dbt ended without a word, as a process does that is killed"


class Attempts:
    """What the audit says of one run."""

    def __init__(self, session: Session, audit: AuditTable, run_id: str) -> None:
        self.session, self.audit, self._run_id = session, audit, run_id

    def committed(self, target: Target) -> dict[str, Load]:
        return self.audit.written_by(self.session, [self._run_id], target.table)

    def stopped(self, target: Target) -> dict[str, dict[str, Any]]:
        """Return what is told of the slices that were refused or failed."""
        session = self.session
        if not self.audit.is_there(session):
            return {}
        found = session.fetch(
            f"SELECT partition_key, detail FROM {self.audit.relation(session.spelling)}"
            f" WHERE run_id = {text(session.spelling, self._run_id)} AND outcome <> 'committed'"
            f" AND table_name = {text(session.spelling, target.table.qualified)} ORDER BY committed_at"
        )
        return {str(key): json.loads(detail or "{}") for key, detail in found}


class Told:
    """One model of a run: what of it is committed, and what Dagster is told."""

    def __init__(
        self,
        context: dg.AssetExecutionContext,
        key: dg.AssetKey,
        output: dg.OutputContext,
        target: Target,
        left: Sequence[Slice],
        before: Mapping[str, Load],
        attempts: Attempts,
    ) -> None:
        self._context, self.key, self._output = context, key, output
        self._target, self._left = target, left
        self._done = attempts.committed(target)
        self._loads = {**before, **self._done}
        self._stopped = attempts.stopped(target)
        self._spelling = attempts.session.spelling

    def missing(self) -> list[Slice]:
        """Return the slices that should have been written and are not."""
        return [slice_ for slice_ in self._left if slice_.name not in self._done]

    def finished(self, events: Sequence[Any]) -> Iterator[Any]:
        """Yield the materialization of every partition with its audit row, then the tests' results of each."""
        for slice_ in self._target.slices:
            if slice_.name in self._loads:
                self._context.add_asset_metadata(
                    metadata_of_load(slice_, self._loads[slice_.name], self._spelling),
                    asset_key=self.key,
                    partition_key=slice_.partition,
                )
        mine = [event for event in events if _is_of(event, self._context, self.key)]
        outputs = [event for event in mine if isinstance(event, dg.Output)]
        # of several invocations the last one saw all that is there
        yield (
            outputs[-1]
            if outputs
            else dg.Output(None, self._context.output_for_asset_key(self.key))
        )
        self._log_checks()
        checks = {e.check_name: e for e in mine if isinstance(e, dg.AssetCheckResult)}
        yield from checks.values()

    def keep(self) -> None:
        """Before the run fails: let Dagster know what is committed, and what the tests said of each day."""
        done = [slice_ for slice_ in self._left if slice_.name in self._done]
        loads = [self._done[slice_.name] for slice_ in done]
        keep(self._output, done, loads, self._spelling)
        self._log_checks()

    def failure(self, said: Sequence[str]) -> BackfillError:
        """Return the error of the first slice that was not written."""
        first = self.missing()[0]
        why, do = str(self._stopped.get(first.name, {}).get("why") or ""), "Read above what to do"
        if " was left as it was: " not in why:
            why = _shortened([why])
        if not why:
            do = "Read the run's dbt log and correct what it names"
            why = _shortened(said) or _KILLED
        what, _, rest = why.partition(" was left as it was: ")
        error = WriteFailed(
            f"{first.label} was left as it was",
            (rest if what == first.label else why).rstrip("."),
            do,
        )
        return self.stopped_by(error)

    def closing_failed(self, said: Sequence[str], paused: bool) -> BackfillError:
        """Return the error of a run whose every slice is committed, and whose dbt failed at a hook, a test or another model."""
        why = _shortened(said) or _KILLED
        if paused:
            why = "a pause ended dbt before its hooks and tests had ended"
        return closing_failed(
            self._target.slices[-1], WriteFailed("dbt failed", why, "Read its log")
        )

    def stopped_by(self, error: BackfillError) -> BackfillError:
        """Return the error of the whole run, which `error` stopped at its first slice that is not written."""
        at = list(self._left).index(self.missing()[0])
        return error if len(self._left) == 1 else stopped(self._left, at, error)

    def _log_checks(self) -> None:
        """Log what each day's tests said before its commit: Dagster's own results know no partition in a range."""
        checks = {
            check.name
            for check in self._context.selected_asset_check_keys
            if check.asset_key == self.key
        }
        told = {name: load.findings for name, load in self._done.items()}
        told |= {name: detail.get("findings", []) for name, detail in self._stopped.items()}
        slices = {
            slice_.name: str(slice_.partition) for slice_ in self._left if slice_.name in told
        }
        targets = newest_materializations(self._context, self.key, list(slices.values()))
        for name, partition in slices.items():
            for finding in told[name]:
                if finding["rule"] in checks:
                    found = CheckFound(
                        finding["rule"],
                        partition,
                        name,
                        finding["passed"],
                        finding["severity"] == "block",
                        finding["why"],
                        {"failing_rows": finding["found"]},
                    )
                    self._context.op_execution_context.log_event(
                        evaluation(self.key, found, targets)  # pyright: ignore[reportArgumentType]
                    )


def _is_of(event: Any, context: dg.AssetExecutionContext, key: dg.AssetKey) -> bool:
    if isinstance(event, dg.Output):
        return event.output_name == context.output_for_asset_key(key)
    return isinstance(event, dg.AssetCheckResult) and event.asset_key == key


def _shortened(said: Sequence[str]) -> str:
    """Return dbt's own words on one line, from the error on."""
    words = " ".join(" ".join(said).split())
    for mark in (
        "Compilation Error",
        "Database Error",
        "Runtime Error",
        "Parsing Error",
        "Failure in test",
    ):
        if mark in words:
            words = words[words.index(mark) :]
            break
    return words if len(words) <= _LONGEST else f"{words[:_LONGEST]}..."
