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
from backfill_assets.controls.breaker import (
    METADATA,
    Failure,
    report_failure,
    strictest,
)
from backfill_assets.controls.held import is_held
from backfill_assets.controls.lanes import in_backfill_lane
from backfill_assets.errors import MissingDriver
from backfill_assets.settings import Settings, settings

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
        backfill = in_backfill_lane(plan_context.dagster_run.tags)
        executor = self._of_backfills() if backfill else self._processes()
        context = PlanOrchestrationContext(
            plan_context.plan_data,
            plan_context.log,
            executor,
            plan_context.output_capture,
            plan_context.resume_from_failure,
        )
        for event in executor.execute(context, execution_plan):
            if backfill and event.is_step_failure:
                _report(plan_context, event, self._settings)
            yield event

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


def _report(context: PlanOrchestrationContext, event: dg.DagsterEvent, chosen: Settings) -> None:
    """Trip the breaker; that this itself fails must not hide what failed in the step."""
    run = context.instance.get_run_by_id(context.run_id) or context.dagster_run
    if is_held(run):
        return  # stopped by a pause, which is no failure
    try:
        names, policies = _assets_of(context, str(event.step_key))
        after = strictest(policies, chosen.on_failure)
        failure = Failure(run, names, _why(event))
        done = report_failure(context.instance, failure, after, sender(chosen.alert_urls))
        if done is not None:
            context.log.error(f"The circuit breaker saw step {event.step_key} fail: {done}.")
    except Exception as error:
        context.log.error(f"The circuit breaker could not act: {type(error).__name__}: {error}")


def _assets_of(context: PlanOrchestrationContext, step: str) -> tuple[list[str], list[object]]:
    """Return the assets of a step (those that it checks, for a check) and the failure policies they declare."""
    layer = context.job.get_definition().asset_layer
    names: list[str] = []
    policies: list[object] = []
    for data in layer.data:
        if str(data.node_handle) not in (step, step.split("[")[0].split(".")[0]):
            continue
        specs = data.assets_def
        keys = list(specs.keys) or [check.asset_key for check in specs.check_keys]
        for key in keys:
            names.append(key.to_user_string())
            found = (
                layer.asset_graph.get(key).metadata.get(METADATA)
                if layer.asset_graph.has(key)
                else None
            )
            if found is not None:
                policies.append(getattr(found, "value", found))
    return names, policies


def _why(event: dg.DagsterEvent) -> str:
    data = event.step_failure_data
    if data.user_failure_data is not None and data.user_failure_data.description:
        return data.user_failure_data.description
    error: Any = data.error
    while error is not None and error.cause is not None:
        error = error.cause
    return " ".join(error.message.split()) if error is not None else "no reason is known"
