"""The run coordinator that dagster.yaml names: stamps each run's lane, and holds backfills that are paused.

Everything that goes through the queue passes here, from the UI, a schedule or `dagster job launch`.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator, Mapping
from datetime import datetime, timezone
from typing import Any

import dagster as dg
from dagster._core.run_coordinator.base import SubmitRunContext
from dagster._core.run_coordinator.queued_run_coordinator import (
    QueuedRunCoordinator,
    RunQueueConfig,
)

from backfill_assets.controls.alerts import must_be_usable
from backfill_assets.controls.family import ROOT_BACKFILL
from backfill_assets.controls.gate import in_words
from backfill_assets.controls.held import REFUSED, unmarked
from backfill_assets.controls.lanes import (
    BACKFILL,
    CONTROL,
    LANE,
    LANE_WHY,
    PRIORITY,
    lane_of,
    partitions_of,
)
from backfill_assets.controls.pausing import forgotten_pauses
from backfill_assets.controls.reason import missing_reason, reason_of
from backfill_assets.controls.switch import EVERYTHING, Switch
from backfill_assets.controls.tables import table_tags
from backfill_assets.errors import BackfillError, Refused
from backfill_assets.instance.limits import BACKFILLS, Limits, LimitsFile
from backfill_assets.instance.targets import RunTarget, run_target
from backfill_assets.settings import settings

_LOW = "-10"
_K8S = "dagster-k8s/config"
_log = logging.getLogger(__name__)


class LaneRunCoordinator(QueuedRunCoordinator):
    """Dagster's own queue, in two lanes. Its configuration is that of `QueuedRunCoordinator`."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        """Raise `DeclarationError` for settings or limits that cannot be right."""
        super().__init__(*arguments, **options)
        must_be_usable(settings().alert_urls)
        self._file = LimitsFile(
            Limits(self._max_concurrent_runs, tuple(self._tag_concurrency_limits))
        )
        self._unreadable = False

    def submit_run(self, context: SubmitRunContext) -> dg.DagsterRun:
        """Stamp the run's lane and queue it; a run that may not be is failed with the reason, not raised.

        An error here would be tried again for ever by the backfill daemon, and tell nobody why.
        """
        run = context.dagster_run
        if run.status != dg.DagsterRunStatus.NOT_STARTED:
            return super().submit_run(context)
        target = run_target(run, context.workspace)
        if _is_control(run, target):
            return self._instance.launch_run(run.run_id, context.workspace)
        try:
            _refuse_missing(run, target)
            stamps = self._stamps(run, target)
            self._instance.add_run_tags(run.run_id, stamps)
            self._refuse_without_reason(run, target, stamps)
        except BackfillError as refused:
            self._instance.add_run_tags(run.run_id, {REFUSED: "yes"})
            self._instance.report_run_failed(run, message=f"Refused: {refused}")
            return self._again(run)
        return super().submit_run(context._replace(dagster_run=self._again(run)))

    def get_run_queue_config(self) -> RunQueueConfig:
        """Return the limits as they are now: the file's, and none at all for what is paused."""
        limits = self._file.limits()
        return (
            super()
            .get_run_queue_config()
            ._replace(
                max_concurrent_runs=limits.runs,
                # of two limits on one tag, Dagster takes the later one
                tag_concurrency_limits=[*limits.in_order, *self._paused()],
            )
        )

    def _stamps(self, run: dg.DagsterRun, target: RunTarget) -> dict[str, str]:
        now = datetime.now(timezone.utc)
        placed = lane_of(run.tags, target.ended, now=now, live_days=settings().live_days)
        stamps = {LANE: placed.lane, LANE_WHY: placed.why}
        stamps |= unmarked(run.tags, self._instance.run_retries_max_retries)
        if REFUSED in run.tags:
            stamps[REFUSED] = "no"  # left over from the run that this one repeats, or made up
        if placed.lane == "backfill":
            stamps[PRIORITY] = _lowered(run.tags.get(PRIORITY))
            stamps |= table_tags(target.tables)
            config = settings().lane_k8s_config
            if config and _K8S not in run.tags:
                stamps[_K8S] = json.dumps(config)
        elif run.tags.get(PRIORITY) == _LOW and LANE in run.tags:
            stamps[PRIORITY] = "0"  # left over from the run that this one repeats
        return stamps

    def _refuse_without_reason(
        self, run: dg.DagsterRun, target: RunTarget, stamps: Mapping[str, str]
    ) -> None:
        """Raise `Refused` before any work is done; what was loaded without Dagster is found out at the slice."""
        demand = settings().require_reason
        if demand == "never" or not target.assets:
            return  # what writes no asset rewrites nothing
        if reason_of(self._instance, run.tags, run.run_config):
            return
        lane: Any = stamps[LANE]
        why = missing_reason(demand, lane, None, lambda: self._was_loaded(target))
        if why is not None:
            reason, how = in_words([why])
            reason += forgotten_pauses(self._instance)  # pyright: ignore[reportArgumentType]
            raise Refused(f"run {run.run_id[:8]} was not started", reason, how)

    def _was_loaded(self, target: RunTarget) -> bool:
        wanted = set(target.keys)
        return any(
            wanted & self._instance.get_materialized_partitions(asset) for asset in target.assets
        )

    def _paused(self) -> Iterator[dict[str, Any]]:
        try:
            pauses = Switch(self._instance).pauses()  # pyright: ignore[reportArgumentType]
        except BackfillError as error:
            if not self._unreadable:
                _log.error("Backfills are held: %s", error)
            self._unreadable = True
            yield {**BACKFILLS, "limit": 0}
            return
        self._unreadable = False
        for pause in pauses:
            scope = pause.scope
            if scope.name == EVERYTHING:
                yield {**BACKFILLS, "limit": 0}
            elif scope.backfill is not None:
                for key in (BACKFILL, ROOT_BACKFILL):
                    yield {"key": key, "value": scope.backfill, "limit": 0}
            for tag, value in table_tags(scope.tables).items():
                yield {"key": tag, "value": value, "limit": 0}

    def _again(self, run: dg.DagsterRun) -> dg.DagsterRun:
        found = self._instance.get_run_by_id(run.run_id)
        return found if found is not None else run


def _is_control(run: dg.DagsterRun, target: RunTarget) -> bool:
    """Tell whether the run throws a switch: it waits behind nothing, or a full queue would keep it from its work."""
    return run.tags.get(CONTROL) == "yes" and not target.assets


def _refuse_missing(run: dg.DagsterRun, target: RunTarget) -> None:
    if not target.exists:
        raise Refused(
            f"run {run.run_id[:8]} was not started",
            f"none of its assets has the partition {'...'.join(partitions_of(run.tags))}",
            "Launch partitions that the asset's page lists",
        )


def _lowered(given: str | None) -> str:
    """Return a priority below every live run's; the order that somebody gave backfills among themselves stays."""
    try:
        return str(min(int(given), -1)) if given is not None else _LOW
    except ValueError:
        return _LOW
