"""The code location of the dbt models, beside the first one: a run of any other asset never imports dbt."""

import gc

import dagster as dg

from backfill_assets.quiet import quiet_known_warnings

quiet_known_warnings()
gc.freeze()

from dagster_dbt import DbtCliResource  # noqa: E402

from backfill_assets.dbt.assets import dimensions, facts, nightly  # noqa: E402
from backfill_assets.dbt.place import DBT, PROJECT  # noqa: E402
from backfill_assets.instance.executor import lane_executor  # noqa: E402
from backfill_assets.io_managers import DeleteInsertIOManager  # noqa: E402
from backfill_assets.operations.partition_checks import partition_checks  # noqa: E402
from backfill_assets.operations.parts import backfill_operations  # noqa: E402

defs = dg.Definitions.merge(
    dg.Definitions(
        assets=[dimensions, facts, nightly],
        asset_checks=[partition_checks(facts), partition_checks(nightly)],
        resources={
            "dbt": DbtCliResource(
                project_dir=str(PROJECT), profiles_dir=str(PROJECT), dbt_executable=DBT
            ),
            "io_manager": DeleteInsertIOManager.from_settings(),
        },
        executor=lane_executor,
    ),
    backfill_operations(launch_with="-w workspace_dbt.yaml --location backfill_assets_dbt"),
)
