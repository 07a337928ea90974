"""Gathers the report of one backfill from Dagster's instance, the load audit and the source; writes nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from typing import Any

import dagster as dg
from dagster._core.definitions.partitions.context import partition_loading_context
from dagster._core.execution.backfill import BULK_ACTION_TERMINAL_STATUSES

from backfill_assets.controls.switch import Switch
from backfill_assets.engines import Engine, Session
from backfill_assets.engines.protocol import Attributing
from backfill_assets.errors import BackfillError, DeclarationError, without_secrets
from backfill_assets.io_managers.delete_insert import DeleteInsertIOManager
from backfill_assets.io_managers.kinds import kind_of
from backfill_assets.io_managers.partitions import Target
from backfill_assets.operations.launching import launch_with
from backfill_assets.operations.ranges import target_for
from backfill_assets.operations.reports.checks import checks_of
from backfill_assets.operations.reports.lines import Judge, line_of
from backfill_assets.operations.reports.planning import Plan, plan_of
from backfill_assets.operations.reports.runs import Reason, reasons, step_named
from backfill_assets.operations.reports.values import FailedRun, Report, TableReport
from backfill_assets.operations.reports.warehouse import SliceFacts, facts_of
from backfill_assets.operations.source_rows import select_of
from backfill_assets.writing import AuditTable

# the log of a run is a file of its own; a breaker lets far fewer fail
_REASONS_READ = 200


_GUESSED = "Dagster no longer tells the plan; these are the partitions of the runs."


@dataclass(frozen=True)
class Asked:
    """What the warehouse said of one asset's planned partitions."""

    target: Target | None
    facts: Sequence[SliceFacts]
    notes: Sequence[str]

    def without(self, why: str) -> Asked:
        """Return this with a note that says why rows are not known."""
        return replace(self, notes=[*self.notes, f"Its rows are not known: {why}"])


@dataclass(frozen=True)
class Reader:
    """Where reports come from: Dagster's instance, the location, and the IO manager (of that key) of its tables."""

    instance: dg.DagsterInstance
    repository: Any
    manager: DeleteInsertIOManager
    manager_key: str
    engine: Engine

    def report(self, backfill_id: str) -> Report:
        """Return the report of a backfill; one that there is not is a `DeclarationError`."""
        backfill = self.instance.get_backfill(backfill_id)
        if backfill is None:
            raise DeclarationError(
                f"backfill {backfill_id!r} cannot be reported",
                "there is no backfill with that id",
                "Copy the id from the backfill's page",
            )
        plan = plan_of(self.instance, self.repository, backfill)
        ended = has_ended(backfill, plan)
        failures = _failures(self.instance, plan)
        cancelled = backfill.status.value in ("CANCELED", "CANCELING")
        with self.engine.session(who="a report", read_only=True) as session:
            # given back before Dagster is asked for checks: on DuckDB writers wait for it
            asked = {asset: self._asked(session, backfill_id, plan, asset) for asset in plan.keys}
            cost = session.attributed(backfill_id) if isinstance(session, Attributing) else None
        tables = [
            self._table(plan, asset, found, failures, ended, cancelled)
            for asset, found in asked.items()
        ]
        report = _assembled(self.instance, backfill, plan, tables, failures, ended)
        return replace(report, attributed=cost, launch_with=launch_with(self.repository))

    def _table(
        self,
        plan: Plan,
        asset: dg.AssetKey,
        asked: Asked,
        failures: Mapping[str, Sequence[Reason]],
        ended: bool,
        cancelled: bool,
    ) -> TableReport:
        keys, target = plan.keys[asset], asked.target
        names = [key if key is not None else "(whole table)" for key in keys]
        runs = {run.run_id: run.status for run in plan.runs}
        found = checks_of(self.instance, self.repository, asset, runs)
        step = step_named(self.repository.assets_defs_by_key.get(asset), asset)
        judge = Judge(step, failures, ended, cancelled)
        judge.remember(names, asked.facts)
        lines = [
            line_of(
                target.table if target else None,
                target.slices[number] if target else None,
                names[number],
                judge.verdict(names[number], facts, run),
                facts,
                run,
                found.get(key, ()) if key is not None else (),
            )
            for number, (key, facts) in enumerate(zip(keys, asked.facts, strict=True))
            for run in [plan.newest.get((asset, key))]
        ]
        name = target.table.qualified if target else asset.to_user_string()
        shown = asset.to_user_string()
        return TableReport(name, shown, tuple(lines), found.get(None, ()), tuple(asked.notes))

    def _asked(self, session: Session, backfill: str, plan: Plan, asset: dg.AssetKey) -> Asked:
        """Return the slices and what the warehouse knows of them, or a note that says why it does not."""
        keys, notes = plan.keys[asset], [_GUESSED] if plan.is_guessed else []
        asked = Asked(None, [SliceFacts() for _ in keys], notes)
        definition = self.repository.assets_defs_by_key.get(asset)
        if not _is_ours(definition):
            return asked.without("it is no asset of this location")
        if definition.get_io_manager_key_for_asset_key(asset) != self.manager_key:
            return asked.without("another IO manager writes it")
        select = select_of(definition)
        try:
            with partition_loading_context(dynamic_partitions_store=self.instance):
                target = target_for(
                    self.manager,
                    asset,
                    definition,
                    [str(key) for key in keys],
                    lambda table, column: _kind(session, table, column, select),
                )
        except (BackfillError, dg.DagsterError, ValueError) as error:
            return asked.without(without_secrets(str(error)))
        audit, runs = AuditTable(self.manager.audit_schema), {run.run_id for run in plan.runs}
        facts, lacking = facts_of(
            session, audit, target.table, target.slices, select, backfill, runs
        )
        return Asked(target, facts, [*notes, *lacking])


def has_ended(backfill: Any, plan: Plan) -> bool:
    """Tell whether nothing of the backfill goes on: a job's backfill is called completed while its runs wait."""
    over = backfill.status in BULK_ACTION_TERMINAL_STATUSES
    return over and not any(run.goes_on for run in plan.runs)


def _is_ours(definition: Any) -> bool:
    return definition is not None and definition.is_executable


def _kind(session: Session, table: Any, column: str, select: Any) -> Any:
    """Return the kind of the slice column; a table that was never made has no rows that it could matter for."""
    try:
        return kind_of(session, table, column, select)
    except BackfillError:
        return "timestamptz"


def _failures(instance: dg.DagsterInstance, plan: Plan) -> dict[str, list[Reason]]:
    failed = [r for r in plan.runs if r.status == "FAILURE" and r.run_id in plan.last_words]
    return {run.run_id: reasons(instance, run) for run in failed[:_REASONS_READ]}


def _assembled(
    instance: dg.DagsterInstance,
    backfill: Any,
    plan: Plan,
    tables: list[TableReport],
    failures: dict[str, list[Reason]],
    ended: bool,
) -> Report:
    failed = [
        FailedRun(run.run_id, run.where, "; ".join(r.why for r in failures.get(run.run_id, ())))
        for run in plan.runs
        if run.status == "FAILURE" and (run.run_id in plan.last_words or not run.where)
    ]
    error = backfill.error.message if backfill.error is not None else ""
    return Report(
        backfill=backfill.backfill_id,
        status=backfill.status.value,
        has_ended=ended,
        tables=tuple(tables),
        made_at=datetime.now(timezone.utc),
        created=_instant(backfill.backfill_timestamp),
        ended=_ended(backfill, plan) if ended else None,
        title=without_secrets(backfill.title or ""),
        reason=without_secrets(backfill.tags.get("reason", "")),
        by=without_secrets(backfill.tags.get("launched_by") or backfill.tags.get("user") or ""),
        runs=Counter(run.status for run in plan.runs),
        failed_runs=tuple(reversed(failed)),
        error=without_secrets(" ".join(error.split())),
        paused=_paused(instance, backfill.backfill_id),
    )


def _ended(backfill: Any, plan: Plan) -> datetime | None:
    """Return when the last of it ended: a job's backfill is over for Dagster before its runs have begun."""
    ends = [backfill.backfill_end_timestamp, *(run.ended for run in plan.runs)]
    return _instant(max((end for end in ends if end is not None), default=None))


def _instant(timestamp: float | None) -> datetime | None:
    return None if timestamp is None else datetime.fromtimestamp(timestamp, timezone.utc)


def _paused(instance: dg.DagsterInstance, backfill: str) -> str:
    try:
        pauses = Switch(instance).pauses()
    except BackfillError as error:
        return str(error)
    told = [pause.told(pause.since) for pause in pauses if pause.scope.backfill == backfill]
    return without_secrets("; ".join(told))
