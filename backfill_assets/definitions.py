"""The entry point that workspace.yaml names: assembles, decides nothing."""

import os

import dagster as dg

from backfill_assets.quiet import quiet_known_warnings

quiet_known_warnings()

from backfill_assets.flights.assets import FLIGHTS, fct_flights  # noqa: E402
from backfill_assets.io_managers import DeleteInsertIOManager  # noqa: E402
from backfill_assets.sales.assets import SALES_RAW, daily_product_sales, fct_sales  # noqa: E402
from backfill_assets.settings import settings  # noqa: E402

_URL = "BACKFILL_WAREHOUSE_URL"

defs = dg.Definitions(
    assets=[SALES_RAW, fct_sales, daily_product_sales, FLIGHTS, fct_flights],
    jobs=[
        dg.define_asset_job("rebuild_sales", selection=[fct_sales, daily_product_sales]),
        dg.define_asset_job("rebuild_flights", selection=[fct_flights]),
    ],
    resources={
        "io_manager": DeleteInsertIOManager(
            # by name where it is set, so that the UI shows the variable and not a password
            url=dg.EnvVar(_URL) if _URL in os.environ else settings().warehouse_url,
            audit_schema=settings().audit_schema,
        )
    },
)
