"""A code location for the stories of the controls: small tables whose days take as long, wait or fail as a file says."""

import json
import os
import time
from pathlib import Path

import dagster as dg
import pyarrow as pa

from backfill_assets.quiet import quiet_known_warnings

quiet_known_warnings()

from backfill_assets.instance.executor import lane_executor  # noqa: E402
from backfill_assets.io_managers import DeleteInsertIOManager, PerSlice  # noqa: E402
from backfill_assets.operations.parts import backfill_operations  # noqa: E402

DAYS = dg.DailyPartitionsDefinition("2026-01-01", end_offset=1)


def told(name: str, default: object) -> object:
    """Return what the story wants, from a file beside Dagster's home that it may change at any time."""
    file = Path(os.environ["DAGSTER_HOME"]) / "story.json"
    return json.loads(file.read_text()).get(name, default) if file.exists() else default


def rows_of(day: str) -> pa.Table:
    where = os.environ.get("STORY_WORKER", "no worker")
    return pa.table(
        {
            "day": [day] * 3,
            "id": [1, 2, 3],
            "batch": [told("batch", 0)] * 3,
            "where_made": [where] * 3,
        }
    )


def compute(day: str) -> pa.Table:
    time.sleep(float(str(told("seconds", 0))))
    while day in told("held", []):  # type: ignore[operator]
        time.sleep(0.2)
    if day in told("failing", []):  # type: ignore[operator]
        raise ValueError(f"the story wants {day} to fail")
    if day in told("dying", []):  # type: ignore[operator]
        os.kill(os.getpid(), 9)
    return rows_of(day)


METADATA = {"partition_expr": "day", "partition_kind": "iso_text"}


@dg.asset(key_prefix=["mart"], partitions_def=DAYS, metadata=METADATA)
def daily(context: dg.AssetExecutionContext) -> pa.Table:
    """One partition a run."""
    return compute(context.partition_key)


@dg.asset(key_prefix=["mart"], partitions_def=DAYS, metadata=METADATA)
def other(context: dg.AssetExecutionContext) -> pa.Table:
    """Another table, for what is not to be touched."""
    return compute(context.partition_key)


@dg.asset(
    key_prefix=["mart"],
    partitions_def=DAYS,
    metadata=METADATA,
    backfill_policy=dg.BackfillPolicy.single_run(),
)
def batched() -> PerSlice:
    """All partitions in one run."""
    return PerSlice(lambda slice_: compute(str(slice_.partition)))


defs = dg.Definitions.merge(
    dg.Definitions(
        assets=[daily, other, batched],
        jobs=[dg.define_asset_job("daily_job", selection=[daily])],
        resources={"io_manager": DeleteInsertIOManager.from_settings()},
        executor=lane_executor,
    ),
    backfill_operations(),
)
