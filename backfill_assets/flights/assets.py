"""The flights by New York days: 365 of them, one 23 and one 25 hours long."""

import dagster as dg

from backfill_assets.io_managers import Select, table_metadata
from backfill_assets.table import SliceColumn, Table

ZONE = "America/New_York"
DAYS = dg.DailyPartitionsDefinition(start_date="2013-01-01", end_date="2014-01-01", timezone=ZONE)

FCT_FLIGHTS = Table(
    "analytics.fct_flights",
    SliceColumn("time_hour", kind="timestamptz", zone=ZONE),
    unique_key=("time_hour", "carrier", "flight"),
)

FLIGHTS = dg.AssetSpec(
    ["staging", "flights"], group_name="flights", description="Flights as the package brings them."
)


@dg.asset(
    key_prefix=["analytics"],
    partitions_def=DAYS,
    metadata=table_metadata(FCT_FLIGHTS),
    backfill_policy=dg.BackfillPolicy.multi_run(max_partitions_per_run=61),
    deps=[FLIGHTS],
    group_name="flights",
    kinds={"sql"},
    code_version="1",
)
def fct_flights() -> Select:
    """Every column of the source; the day is taken from the instant, never from the source's own year, month, day."""
    return Select("SELECT * FROM staging.flights", on="time_hour")
