"""A code location whose source gets rows late, and whose days fail when a test says so."""

import json
import os
from pathlib import Path

import dagster as dg
import pyarrow as pa

from backfill_assets.expectations import Source
from backfill_assets.io_managers import (
    Controls,
    DeleteInsertIOManager,
    PerSlice,
    Select,
    table_metadata,
)
from backfill_assets.operations.parts import backfill_operations
from backfill_assets.table import SliceColumn, Table

DAYS = dg.DailyPartitionsDefinition("2026-05-01", end_date="2026-06-01")
SOURCE = Source("raw.sales", on="sold_at", ingested_at="arrived_at")
BY_DAY = {"partition_expr": "day", "partition_kind": "iso_text"}


def metadata(name: str, **more: str) -> dict:
    table = Table(f"mart.{name}", SliceColumn("day", "date"), ("id",), source=SOURCE)
    return {**table_metadata(table), **more}


def failing() -> list[str]:
    """Return the days that a test wants to fail."""
    file = Path(os.environ.get("LATE_TEST_FAILING", "nowhere"))
    return json.loads(file.read_text()) if file.exists() else []


def compute(name: str, day: str) -> pa.Table:
    if day in failing() or f"{name} {day}" in failing():
        raise ValueError(f"{name} {day} fails")
    return pa.table({"day": [day] * 2, "id": [1, 2]})


@dg.asset(
    key_prefix=["mart"], partitions_def=DAYS, metadata=metadata("sales", late_rows="backfill")
)
def sales() -> Select:
    return Select("SELECT CAST(sold_at AS DATE) AS day, id FROM raw.sales", on="sold_at")


@dg.asset(key_prefix=["mart"], partitions_def=DAYS, metadata=metadata("told", late_rows="report"))
def told() -> Select:
    return Select("SELECT CAST(sold_at AS DATE) AS day, id FROM raw.sales", on="sold_at")


@dg.asset(key_prefix=["mart"], partitions_def=DAYS, metadata=BY_DAY)
def daily(context: dg.AssetExecutionContext) -> pa.Table:
    return compute("daily", context.partition_key)


@dg.asset(key_prefix=["mart"], partitions_def=DAYS, metadata=BY_DAY, deps=[daily])
def after(context: dg.AssetExecutionContext) -> pa.Table:
    return compute("after", context.partition_key)


@dg.asset(key_prefix=["mart"], partitions_def=DAYS, metadata=BY_DAY)
def other(context: dg.AssetExecutionContext) -> pa.Table:
    return compute("other", context.partition_key)


@dg.asset(
    key_prefix=["mart"],
    partitions_def=DAYS,
    metadata=BY_DAY,
    backfill_policy=dg.BackfillPolicy.single_run(),
)
def batched() -> PerSlice:
    return PerSlice(lambda slice_: compute("batched", str(slice_.partition)))


@dg.asset(key_prefix=["mart"], partitions_def=DAYS)
def elsewhere(context: dg.AssetExecutionContext) -> None:
    """An asset that writes somewhere else, and of which Dagster alone knows what is done."""
    compute("elsewhere", context.partition_key)


REGIONS = dg.MultiPartitionsDefinition(
    {"day": DAYS, "region": dg.StaticPartitionsDefinition(["eu", "us"])}
)
BY_REGION = {
    **table_metadata(
        Table(
            "mart.by_region",
            SliceColumn("day", "date"),
            ("id",),
            source=Source("raw.regions", on="sold_at", ingested_at="arrived_at"),
        ),
        partition_expr={"day": "day", "region": "region"},
    ),
    "late_rows": "backfill",
}


@dg.asset(key_prefix=["mart"], partitions_def=REGIONS, metadata=BY_REGION)
def by_region(context: dg.AssetExecutionContext) -> Select:
    day, region = context.partition_key.split("|")
    compute("by_region", f"{day}|{region}")
    return Select(
        "SELECT CAST(sold_at AS DATE) AS day, region, id FROM raw.regions"
        f" WHERE region = '{region}'",
        on="sold_at",
    )


ASSETS = [sales, told, by_region, daily, after, other, batched, elsewhere]
OTHERS = {
    "resources": {
        "io_manager": DeleteInsertIOManager(
            url=dg.EnvVar("LATE_TEST_URL"), controls=Controls(require_reason="backfill")
        )
    },
    "executor": dg.in_process_executor,
}
defs = dg.Definitions.merge(
    dg.Definitions(
        assets=ASSETS,
        jobs=[dg.define_asset_job("pair", selection=[daily, other])],
        **OTHERS,
    ),
    backfill_operations(),
)

# the same location some releases later: its days begin later, and one asset is gone
LATER = dg.DailyPartitionsDefinition("2026-05-04", end_date="2026-06-01")
defs_later = dg.Definitions.merge(
    dg.Definitions(
        assets=[
            dg.map_asset_specs(lambda spec: spec.replace_attributes(partitions_def=LATER), [asset])[
                0
            ]
            for asset in ASSETS
            if asset is not other
        ],
        **OTHERS,
    ),
    backfill_operations(),
)

# and in another zone, so that a day of the same name is another stretch of time
NEW_YORK = dg.DailyPartitionsDefinition("2026-05-01", timezone="America/New_York")
defs_in_new_york = dg.Definitions.merge(
    dg.Definitions(
        assets=dg.map_asset_specs(
            lambda spec: spec.replace_attributes(partitions_def=NEW_YORK), [daily]
        ),
        **OTHERS,
    ),
    backfill_operations(),
)
