"""A location whose days are checked: Sundays are closed, one day has no rows for no reason, amounts may not be negative."""

import dagster as dg
import pandas as pd

from backfill_assets.expectations import NoRows
from backfill_assets.instance.executor import lane_executor
from backfill_assets.io_managers import DeleteInsertIOManager, Select, table_metadata
from backfill_assets.operations.partition_checks import partition_checks
from backfill_assets.operations.parts import backfill_operations
from backfill_assets.table import SliceColumn, Table

DAYS = dg.DailyPartitionsDefinition("2026-05-01", end_date="2026-06-01")
SALES = Table(
    "mart.sales",
    SliceColumn("day", "date"),
    unique_key=("id",),
    columns={"day": "DATE", "id": "BIGINT", "amount": "BIGINT"},
    closed=("sunday",),
    expects=(NoRows("positive", "SELECT * FROM slice_rows WHERE amount < 0", severity="warn"),),
)


@dg.asset(
    key_prefix=["mart"],
    partitions_def=DAYS,
    metadata=table_metadata(SALES),
    backfill_policy=dg.BackfillPolicy.multi_run(3),
)
def sales() -> Select:
    return Select("SELECT day, id, amount FROM raw.sales")


@dg.asset(
    key_prefix=["mart"],
    partitions_def=DAYS,
    metadata=table_metadata(Table("mart.sums", SliceColumn("day", "date"), closed=("sunday",))),
    backfill_policy=dg.BackfillPolicy.multi_run(3),
)
def sums(sales: pd.DataFrame) -> pd.DataFrame:
    return sales.groupby("day", as_index=False)[["amount"]].sum()


defs = dg.Definitions.merge(
    dg.Definitions(
        assets=[sales, sums],
        asset_checks=[partition_checks(sales), partition_checks(sums)],
        resources={"io_manager": DeleteInsertIOManager(url=dg.EnvVar("LATE_TEST_URL"))},
        executor=lane_executor,
    ),
    backfill_operations(),
)
