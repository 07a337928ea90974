"""What a code location adds to have its backfills controlled: jobs, the breaker's sensor, the switch as an asset."""

from __future__ import annotations

import dagster as dg

from backfill_assets.controls.jobs import pause_backfills, raise_budget_job, resume_backfills
from backfill_assets.controls.sensors import backfill_circuit_breaker
from backfill_assets.controls.switch import ASSET

SWITCH = dg.AssetSpec(
    ASSET,
    group_name="controls",
    description="The kill switch of backfills: each event is a pause or its end, with who, why and when.",
)


def control_definitions() -> dg.Definitions:
    """Return the definitions to merge with those of a location; its executor is `instance.executor.lane_executor`."""
    return dg.Definitions(
        assets=[SWITCH],
        jobs=[pause_backfills, resume_backfills, raise_budget_job],  # pyright: ignore[reportArgumentType]
        sensors=[backfill_circuit_breaker],
    )
