"""The entry point that workspace.yaml names: assembles, decides nothing."""

import gc

import dagster as dg

from backfill_assets.quiet import quiet_known_warnings

quiet_known_warnings()
# what Dagster has imported stays for good: looking through all of it for garbage costs each run's process 50 ms
gc.freeze()

from backfill_assets.flights.assets import FLIGHTS, fct_flights  # noqa: E402
from backfill_assets.instance.executor import lane_executor  # noqa: E402
from backfill_assets.io_managers import DeleteInsertIOManager  # noqa: E402
from backfill_assets.operations.partition_checks import partition_checks  # noqa: E402
from backfill_assets.operations.parts import backfill_operations  # noqa: E402
from backfill_assets.orders import assets as orders  # noqa: E402
from backfill_assets.payments.assets import fct_payments  # noqa: E402
from backfill_assets.sales.assets import SALES_RAW, daily_product_sales, fct_sales  # noqa: E402

defs = dg.Definitions.merge(
    dg.Definitions(
        assets=[
            SALES_RAW,
            fct_sales,
            daily_product_sales,
            FLIGHTS,
            fct_flights,
            fct_payments,
            *orders.orders_pair,
            orders.reconciliation,
        ],
        asset_checks=[
            *(partition_checks(asset) for asset in (fct_sales, daily_product_sales, fct_payments)),
            orders.checks,
        ],
        jobs=[
            dg.define_asset_job("rebuild_sales", selection=[fct_sales, daily_product_sales]),
            dg.define_asset_job("rebuild_flights", selection=[fct_flights]),
            dg.define_asset_job("replay_events", selection=[fct_payments]),
            orders.reconcile,
            *orders.moves,
        ],
        schedules=[orders.nightly],
        resources={"io_manager": DeleteInsertIOManager.from_settings()},
        executor=lane_executor,
    ),
    backfill_operations(),
)
