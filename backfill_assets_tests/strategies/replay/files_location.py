"""A location whose replay can be killed: run as `python -m ... FIRST LAST [RUN]`, it fills a range, or what `RUN` left of it."""

from __future__ import annotations

import os
import signal
import sys
from typing import Any

import dagster as dg
import pyarrow as pa
from dagster._core.definitions.reconstruct import ReconstructableRepository

from backfill_assets.io_managers import DeleteInsertIOManager, computing
from backfill_assets.strategies.replay import Events, FileEvents, replay_asset
from backfill_assets.table import SliceColumn, Table

DAYS = dg.DailyPartitionsDefinition("2026-05-01", end_date="2026-05-11")


def killed_on_the_way(events: pa.Table) -> pa.Table:
    """Make rows, and be killed as by `kill -9` where the day is the one that is named."""
    days: Any = events["ordered_at"].cast(pa.date32())
    if os.environ.get("KILLED_AT") in {str(day) for day in days.to_pylist()}:
        os.kill(os.getpid(), signal.SIGKILL)
    return pa.table({"order_date": days, "order_id": events["order_id"], "amount": events["amount"]})  # fmt: skip


fct_orders = replay_asset(
    ["analytics", "fct_orders"],
    source=FileEvents(os.environ.get("EVENTS_FOLDER", "."), at="ordered_at"),
    events=Events(
        {"order_id": "BIGINT", "ordered_at": "TIMESTAMPTZ", "amount": "DECIMAL(18, 2)"},
        time="ordered_at",
        key=("order_id",),
    ),
    table=Table("analytics.fct_orders", slice_column=SliceColumn("order_date", "date")),
    partitions_def=DAYS,
    transform=killed_on_the_way,
    folder=os.environ.get("SCRATCH_FOLDER"),
)
defs = dg.Definitions(
    assets=[fct_orders],
    jobs=[dg.define_asset_job("load", [fct_orders])],
    executor=dg.in_process_executor,
    resources={"io_manager": DeleteInsertIOManager(url=dg.EnvVar("WAREHOUSE_URL"))},
)


def main(first: str, last: str, resumes: str | None = None) -> None:
    computing._AHEAD_SLICES = 1  # each day is written before the next is made
    tags = {"dagster/asset_partition_range_start": first, "dagster/asset_partition_range_end": last}
    job = ReconstructableRepository.for_module(
        "backfill_assets_tests.strategies.replay.files_location", "defs", os.getcwd()
    ).get_reconstructable_job("load")
    with dg.DagsterInstance.get() as instance:
        again = dg.ReexecutionOptions.from_failure(resumes, instance) if resumes else None
        tags |= {"dagster/is_resume_retry": "true"} if resumes else {}
        dg.execute_job(job, instance, tags=tags, reexecution_options=again, raise_on_error=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
