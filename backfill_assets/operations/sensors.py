"""The circuit breaker's second eye: runs whose process died without a word, seen by the daemon within seconds."""

from __future__ import annotations

import dagster as dg

from backfill_assets.controls.alerts import sender
from backfill_assets.controls.breaker import Failure, report_failure, strictest
from backfill_assets.controls.held import is_held
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
    record = context.instance.get_run_record_by_id(run.run_id)
    if is_held(run) or record is None or record.start_time is None:
        return  # stopped by a pause, or refused before it began: told on the spot, and no failure of the data
    failure = Failure(run, (), context.failure_event.message or "its process ended without a word")
    after = strictest([], settings().on_failure)
    done = report_failure(context.instance, failure, after, sender(settings().alert_urls))
    if done is not None:
        context.log.info(f"Run {run.run_id} of a backfill failed: {done}.")
