"""The executor of the location: each run's steps go where its lane says, and a failed step trips the breaker."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import dagster as dg
from dagster._core.execution.context.system import PlanOrchestrationContext
from dagster._core.execution.retries import RetryMode
from dagster._core.executor.base import Executor
from dagster._core.executor.in_process import InProcessExecutor
from dagster._core.executor.multiprocess import MultiprocessExecutor

from backfill_assets.controls.alerts import sender
from backfill_assets.controls.breaker import Failure, pauses_after, policies_of, report_failure
from backfill_assets.controls.gate import END_THE_PAUSE, Held
from backfill_assets.controls.lanes import RANGE, lane_under_way, partitions_of
from backfill_assets.errors import MissingDriver
from backfill_assets.partition_keys import oldest_of
from backfill_assets.settings import Settings, settings
from backfill_assets.writing.run import Lane

# what a step raises that is told to end
_INTERRUPTS = ("DagsterExecutionInterruptedError", "KeyboardInterrupt")
_CANCELLED = (dg.DagsterRunStatus.CANCELING, dg.DagsterRunStatus.CANCELED)
_CONFIG = {
    "max_concurrent": dg.Field(
        dg.Noneable(int),
        is_required=False,
        default_value=None,
        description="How many steps of a run go on at once in processes of their own; the number of cores by default.",
    )
}


@dg.executor(
    name="lanes",
    config_schema=_CONFIG,
    requirements=dg.multiple_process_executor_requirements(),
)
def lane_executor(init_context: dg.InitExecutorContext) -> Executor:
    """Live runs take a process for each step; backfill runs go on in their own process, or where the settings say."""
    return LaneExecutor(settings(), init_context.executor_config.get("max_concurrent"))


class LaneExecutor(Executor):
    """Chooses an executor by the run's lane."""

    def __init__(self, chosen: Settings, max_concurrent: Any = None) -> None:
        self._settings, self._max_concurrent = chosen, max_concurrent

    @property
    def retries(self) -> RetryMode:
        """Steps are tried again where their own policy says so."""
        return RetryMode.ENABLED

    def execute(
        self, plan_context: PlanOrchestrationContext, execution_plan: Any
    ) -> Iterator[dg.DagsterEvent]:
        """Execute the plan in the lane of its run."""
        lane = _lane_of(plan_context, self._settings)
        executor = self._of_backfills() if lane == "backfill" else self._processes()
        context = PlanOrchestrationContext(
            plan_context.plan_data,
            plan_context.log,
            executor,
            plan_context.output_capture,
            plan_context.resume_from_failure,
        )
        for event in executor.execute(context, execution_plan):
            yield event  # first: telling people may take a while
            if lane == "backfill" and event.is_step_failure:
                _report(plan_context, event, self._settings, lane)

    def _processes(self) -> Executor:
        return MultiprocessExecutor(RetryMode.ENABLED, self._max_concurrent)

    def _of_backfills(self) -> Executor:
        if self._settings.lane_executor == "in_process":
            return InProcessExecutor(RetryMode.ENABLED)
        if self._settings.lane_executor == "multiprocess":
            return self._processes()
        return celery_executor(self._settings)


def celery_executor(chosen: Settings) -> Any:
    """Return the executor that sends steps to the Celery queue of the backfill lane."""
    try:
        from dagster_celery.executor import CeleryExecutor
    except ImportError as error:
        raise MissingDriver(
            "BACKFILL_LANE_EXECUTOR=celery cannot be used",
            "the package dagster-celery is not installed",
            "Install backfill-assets[celery]",
        ) from error
    return CeleryExecutor(
        RetryMode.ENABLED,
        broker=chosen.celery_broker,
        backend=chosen.celery_backend or chosen.celery_broker,
        config_source={"task_default_queue": chosen.celery_queue},
    )


def _lane_of(context: PlanOrchestrationContext, chosen: Settings) -> Lane:
    """Return the lane of the run as its assets' partitions tell it, which outside the queue nobody has asked yet."""
    run, layer = context.dagster_run, context.job.get_definition().asset_layer
    graph = layer.asset_graph
    definitions = [
        found
        for key in sorted(run.asset_selection or layer.executable_asset_keys)
        if graph.has(key) and (found := graph.get(key).partitions_def) is not None
    ]
    ended = oldest_of(definitions, partitions_of(run.tags), is_range=RANGE[0] in run.tags)
    return lane_under_way(context.instance, run, chosen.live_days, ended)


def _report(
    context: PlanOrchestrationContext, event: dg.DagsterEvent, chosen: Settings, lane: Lane
) -> None:
    """Trip the breaker; that this itself fails must not hide what failed in the step."""
    try:
        if _is_held(event):
            return  # stopped by a pause, which is no failure; that another step was held does not excuse this one
        if _is_cancelled(context, event):
            return  # somebody's wish; where it was nobody's, the run ends as failed and the sensor reports that
        keys = _assets_of(context, str(event.step_key))
        graph = context.job.get_definition().asset_layer.asset_graph
        after = pauses_after(policies_of(graph, keys, chosen.on_failure), chosen.on_failure)
        names = [key.to_user_string() for key in keys]
        failure = Failure(context.dagster_run, names, _why(event), lane)
        done = report_failure(context.instance, failure, after, sender(chosen.alert_urls))
        if done is not None:
            context.log.error(f"The circuit breaker saw step {event.step_key} fail: {done}.")
    except Exception as error:
        context.log.error(f"The circuit breaker could not act: {type(error).__name__}: {error}")


def _assets_of(context: PlanOrchestrationContext, step: str) -> list[dg.AssetKey]:
    """Return the assets of a step: those that it checks, for a check."""
    layer = context.job.get_definition().asset_layer
    found: list[dg.AssetKey] = []
    for data in layer.data:
        if str(data.node_handle) in (step, step.split("[")[0].split(".")[0]):
            specs = data.assets_def
            found += list(specs.keys) or [check.asset_key for check in specs.check_keys]
    return found


def _is_cancelled(context: PlanOrchestrationContext, event: dg.DagsterEvent) -> bool:
    if any(error.cls_name in _INTERRUPTS for error in _chain(event)):
        return True
    now = context.instance.get_run_by_id(context.run_id)
    return now is not None and now.status in _CANCELLED


def _is_held(event: dg.DagsterEvent) -> bool:
    return any(
        error.cls_name == Held.__name__ or END_THE_PAUSE in error.message for error in _chain(event)
    )


def _chain(event: dg.DagsterEvent) -> list[Any]:
    """Return the errors of a failed step, each caused by the next."""
    error: Any = event.step_failure_data.error
    found: list[Any] = []
    while error is not None:
        found.append(error)
        error = error.cause
    return found


def _why(event: dg.DagsterEvent) -> str:
    data = event.step_failure_data
    if data.user_failure_data is not None and data.user_failure_data.description:
        return data.user_failure_data.description
    errors = _chain(event)
    return " ".join(errors[-1].message.split()) if errors else "no reason is known"
