"""Who launched a run and why, read from its tags, its configuration and its backfill."""

from __future__ import annotations

import getpass
import json
from collections.abc import Mapping
from datetime import datetime, timezone
from typing import Any

import dagster as dg
from dagster import DagsterInvariantViolationError

from backfill_assets.controls.lanes import BACKFILL, lane_by_tags, lane_under_way
from backfill_assets.controls.reason import reason_of
from backfill_assets.errors import DeclarationError
from backfill_assets.partition_keys import oldest_end
from backfill_assets.writing.run import Lane, Run

STRATEGIES = ("recompute", "replay", "dual-write")
_LAUNCHERS = {
    "dagster/schedule_name": "schedule",
    "dagster/sensor_name": "sensor",
    "dagster/from_automation_condition": "automation",
    "dagster/auto_materialize": "automation",
}


def run_of(context: dg.OutputContext, live_days: int) -> Run:
    """Return the run as the audit will remember it; its lane is that of its tags and partitions.

    Tags: `reason`, `ticket`, `allow` (`empty`, `shrink`, `retention`, separated by commas), `launched_by`, `lane`,
    `strategy`. The source of a frame counts as read when its step started.
    """
    step = step_of(context)
    tags: Mapping[str, str] = step.dagster_run.tags if step is not None else {}
    spec = context.asset_spec if step is not None and context.has_asset_key else None
    backfill, detail = _backfill_of(step)
    return Run(
        run_id=step.run_id if step is not None else "unlaunched",
        lane=_lane_of(step, tags, live_days, _ended(context)),
        strategy=_strategy(tags),
        backfill_id=backfill,
        reason=reason_of(step.instance, tags, step.run_config) if step is not None else None,
        ticket=tags.get("ticket"),
        launched_by=_launched_by(step, tags),
        code_version=spec.code_version if spec is not None else None,
        source_read_at=_step_started(step) if step is not None else None,
        allows=_allows(tags),
        detail=detail,
    )


def _lane_of(step, tags: Mapping[str, str], live_days: int, ended: datetime | None) -> Lane:
    if step is None:
        return lane_by_tags(tags, live_days, ended)
    return lane_under_way(step.instance, step.dagster_run, live_days, ended)


def refuse_wrong_tags(
    instance: dg.DagsterInstance, tags: Mapping[str, str], run_config: Mapping[str, Any]
) -> None:
    """Raise for a strategy or an allowance that `run_of` would refuse once the rows are made."""
    _strategy(tags)
    if allows := _allows(tags):
        Run("a run", allows=allows, reason=reason_of(instance, tags, run_config))


def _allows(tags: Mapping[str, str]) -> frozenset[str]:
    return frozenset(part.strip() for part in tags.get("allow", "").split(",") if part.strip())


def _launched_by(step, tags: Mapping[str, str]) -> str | None:
    """Return who launched the run: as the tags say, or what did; a process of one's own belongs to its user."""
    told = tags.get("launched_by") or tags.get("user")
    if told or step is None:
        return told
    for tag, what in _LAUNCHERS.items():
        if tags.get(tag):
            return f"{what} {tags[tag]}"
    if step.dagster_run.remote_job_origin is not None:
        return None  # from the UI or a terminal, which do not say who sat there
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a container may have no such user
        return None


def _strategy(tags: Mapping[str, str]) -> str:
    strategy = tags.get("strategy", STRATEGIES[0])
    if strategy not in STRATEGIES:
        raise DeclarationError(
            f"the run asks for the strategy {strategy!r}",
            "there is no such strategy",
            f"Give the tag strategy as {', '.join(STRATEGIES)}, or leave it out",
        )
    return strategy


def _ended(context: dg.OutputContext) -> datetime | None:
    """Return the end of the oldest partition of the output; None where that is found out later, or never."""
    try:
        return oldest_end(context.asset_partitions_def, context.asset_partition_keys)
    except Exception:  # no partitions, or such as do not exist, which is told by name later on
        return None


def ended_of_run(step: Any) -> datetime | None:
    """Return the end of the oldest partition that the run itself is about; None where that is not known."""
    try:
        return oldest_end(step.run_partitions_def, [step.partition_key_range.start])
    except Exception:  # no partitions, or such as do not exist
        return None


def _backfill_of(step) -> tuple[str | None, str | None]:
    """Return the backfill that the run belongs to, and what else to remember of it.

    A run that is executed again once its backfill has ended keeps the tag, but is an operation of its own.
    """
    if step is None:
        return None, None
    run = step.dagster_run
    backfill, parent = run.tags.get(BACKFILL), run.parent_run_id
    if parent is None:
        return backfill, None
    again = {"executes_again": parent}
    if backfill is None:
        return None, json.dumps(again)
    found = step.instance.get_backfill(backfill)
    record = step.instance.get_run_record_by_id(run.run_id)
    ended = found.backfill_end_timestamp if found is not None else None
    if ended is None or record is None or record.create_timestamp.timestamp() < ended:
        return backfill, json.dumps(again)
    return None, json.dumps({**again, "of_backfill": backfill})


def step_of(context: dg.OutputContext) -> Any:
    """Return the execution context of the step that makes the output; None for a context built by hand."""
    try:
        return context.step_context
    except DagsterInvariantViolationError:
        return None


def _step_started(step) -> datetime | None:
    """Return when this attempt at the step began; a retry reads its source again.

    The source of a graph of ops was read by the first of them.
    """
    handle = step.step.node_handle
    graph = f"{handle.root}." if handle.parent is not None else None
    began = {dg.DagsterEventType.STEP_START, dg.DagsterEventType.STEP_RESTARTED}
    # the last one is this step's, unless others run beside it
    for limit in (1, None) if graph is None else (None,):
        records = step.instance.get_records_for_run(
            step.run_id, of_type=began, limit=limit, ascending=False
        ).records
        events = [record.event_log_entry for record in records]
        if graph is None:
            found = [event.timestamp for event in events if event.step_key == step.step.key][:1]
        else:
            found = [event.timestamp for event in events if str(event.step_key).startswith(graph)]
        if found:
            return datetime.fromtimestamp(min(found), timezone.utc)
    return None
