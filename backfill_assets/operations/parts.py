"""What a code location adds to have its backfills controlled: jobs, sensors, the switch and the reports as assets."""

from __future__ import annotations

import dagster as dg

from backfill_assets.controls.alerts import must_be_usable
from backfill_assets.controls.switch import ASSET
from backfill_assets.operations.doctor.job import doctor_job
from backfill_assets.operations.jobs import pause_backfills, raise_budget_job, resume_backfills
from backfill_assets.operations.late_jobs import late_rows_job
from backfill_assets.operations.late_sensor import late_rows_sensor
from backfill_assets.operations.launching import LAUNCH_WITH, ONE_LOCATION
from backfill_assets.operations.preview import preview_job
from backfill_assets.operations.reports.job import report_job
from backfill_assets.operations.reports.publishing import ASSET as REPORT_ASSET
from backfill_assets.operations.reports.sensor import report_sensor
from backfill_assets.operations.resume import resume_job
from backfill_assets.operations.sensors import backfill_circuit_breaker
from backfill_assets.operations.verify_range import verify_job
from backfill_assets.settings import settings

REPORT = dg.AssetSpec(
    REPORT_ASSET,
    group_name="controls",
    description="Reports of backfills: each event is one, with its headline, counts, plot and files.",
)


def backfill_operations(
    io_manager_key: str = "io_manager", launch_with: str = ONE_LOCATION
) -> dg.Definitions:
    """Return the definitions to merge with those of a location whose IO manager has that key.

    `launch_with`: how `dagster job launch` finds the location, for the commands that its jobs tell people; where a
    workspace has several, `-w its.yaml --location its_name`. The location's executor should be `instance.executor.lane_executor`, which feels a failure at once.
    """
    must_be_usable(settings().alert_urls)
    return dg.Definitions(
        assets=[_switch(launch_with), REPORT],
        jobs=[  # pyright: ignore[reportArgumentType]
            pause_backfills,
            resume_backfills,
            raise_budget_job,
            doctor_job(io_manager_key),
            preview_job(io_manager_key),
            verify_job(io_manager_key),
            report_job(io_manager_key),
            late_rows_job(io_manager_key),
            resume_job(io_manager_key),
        ],
        sensors=[
            backfill_circuit_breaker,
            report_sensor(io_manager_key),
            late_rows_sensor(io_manager_key),
        ],
    )


def _switch(launch_with: str) -> dg.AssetSpec:
    return dg.AssetSpec(
        ASSET,
        group_name="controls",
        description="The kill switch of backfills: each event is a pause or its end, with who, why and when.",
        metadata={LAUNCH_WITH: launch_with},
    )
