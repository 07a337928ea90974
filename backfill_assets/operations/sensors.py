"""The circuit breaker's second eye: runs whose process died without a word, seen by the daemon within seconds."""

from __future__ import annotations

import dagster as dg

from backfill_assets.controls.alerts import sender
from backfill_assets.controls.breaker import Failure, pauses_after, policies_of, report_failure
from backfill_assets.controls.held import is_held, is_refused
from backfill_assets.settings import settings


@dg.run_failure_sensor(
    name="backfill_circuit_breaker",
    minimum_interval_seconds=2,
    default_status=dg.DefaultSensorStatus.RUNNING,
    description="Pauses a backfill one of whose runs has failed, and alerts.",
)
def backfill_circuit_breaker(context: dg.RunFailureSensorContext) -> None:
    """Report a failed backfill run that its own process has not reported; a live run is none of its business."""
    run = context.instance.get_run_by_id(context.dagster_run.run_id) or context.dagster_run
    if is_held(run) or is_refused(run):
        return  # told on the spot, and no failure of the data; a run that could not be started is one
    failure = Failure(run, (), context.failure_event.message or "its process ended without a word")
    after = pauses_after(_policies(context, run), settings().on_failure)
    done = report_failure(context.instance, failure, after, sender(settings().alert_urls))
    if done is not None:
        context.log.info(f"Run {run.run_id} of a backfill failed: {done}.")


def _policies(context: dg.RunFailureSensorContext, run: dg.DagsterRun) -> list[object]:
    """Return the failure policies of the run's assets, as far as the location knows them."""
    repository = context.repository_def
    if repository is None:
        return []
    keys = run.asset_selection
    if not keys and repository.has_job(run.job_name):
        keys = frozenset(repository.get_job(run.job_name).asset_layer.executable_asset_keys)
    return policies_of(repository.asset_graph, keys or (), settings().on_failure)
