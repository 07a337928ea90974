"""Two assets by days: one is a SELECT that never leaves the warehouse, one is written with pandas."""

import dagster as dg

from backfill_assets.io_managers import Select, table_metadata

from .tables import DAILY_PRODUCT_SALES, FCT_SALES, FIRST_DAY

DAYS = dg.DailyPartitionsDefinition(start_date=FIRST_DAY.isoformat(), timezone="UTC")
# a month is four runs; within a run each day is a transaction, a materialization and an audit row of its own
TEN_DAYS_A_RUN = dg.BackfillPolicy.multi_run(max_partitions_per_run=10)

SALES_RAW = dg.AssetSpec(
    ["staging", "sales_raw"],
    group_name="sales",
    description="Sales as the shops report them, some of them late, some of them cancelled.",
)


@dg.asset(
    key_prefix=["analytics"],
    partitions_def=DAYS,
    metadata=table_metadata(FCT_SALES),
    backfill_policy=TEN_DAYS_A_RUN,
    deps=[SALES_RAW],
    group_name="sales",
    kinds={"sql"},
    code_version="1",
)
def fct_sales() -> Select:
    """Confirmed sales by the UTC day on which they happened."""
    return Select(
        """
        SELECT
          CAST(event_at AT TIME ZONE 'UTC' AS DATE) AS sale_date,
          sale_id,
          customer_id,
          product_id,
          qty AS quantity,
          CAST(qty * unit_price AS DECIMAL(18, 2)) AS amount
        FROM staging.sales_raw
        WHERE status = 'confirmed'
        """,
        on="event_at",
    )


@dg.asset(
    key_prefix=["analytics"],
    partitions_def=DAYS,
    metadata=table_metadata(DAILY_PRODUCT_SALES),
    backfill_policy=TEN_DAYS_A_RUN,
    group_name="sales",
    kinds={"pandas"},
    code_version="1",
)
def daily_product_sales(fct_sales):
    """Quantity and amount by product and day; the input is a pandas DataFrame of the run's days."""
    return fct_sales.groupby(["sale_date", "product_id"], as_index=False)[
        ["quantity", "amount"]
    ].sum()
