"""The sample's dbt models as the packaged location has them, over the warehouse that a test names in LATE_TEST_URL."""

import dagster as dg
from dagster_dbt import DbtCliResource

from backfill_assets.dbt.assets import facts, nightly
from backfill_assets.dbt.place import DBT, PROJECT
from backfill_assets.instance.executor import lane_executor
from backfill_assets.io_managers import DeleteInsertIOManager
from backfill_assets.io_managers.controlled import Controls
from backfill_assets.operations.partition_checks import partition_checks
from backfill_assets.operations.parts import backfill_operations

defs = dg.Definitions.merge(
    dg.Definitions(
        assets=[facts, nightly],
        asset_checks=[partition_checks(facts), partition_checks(nightly)],
        resources={
            "dbt": DbtCliResource(
                project_dir=str(PROJECT), profiles_dir=str(PROJECT), dbt_executable=DBT
            ),
            "io_manager": DeleteInsertIOManager(
                url=dg.EnvVar("LATE_TEST_URL"),
                controls=Controls(require_reason="backfill", hold_seconds=8),
            ),
        },
        executor=lane_executor,
    ),
    backfill_operations(launch_with="-w workspace_dbt.yaml --location backfill_assets_dbt"),
)
