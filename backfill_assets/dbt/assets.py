"""The sample's dbt models as assets: facts by day, the nightly copy of customers by day, the dimension as it grows."""

import json
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import dagster as dg
from dagster_dbt import dbt_assets

from backfill_assets.dbt.building import build_slices
from backfill_assets.dbt.invoking import lane_of, reaching
from backfill_assets.dbt.place import MANIFEST
from backfill_assets.dbt.raw import FIRST_DAY
from backfill_assets.dbt.translator import SlicesTranslator

DAYS = dg.DailyPartitionsDefinition(start_date=FIRST_DAY.isoformat(), timezone="UTC")
# each run is one dbt invocation, in which every day has a transaction of its own
# what a night's copy takes is as of now, so a run over several nights would give one of them rows
NIGHT_A_RUN = dg.BackfillPolicy.multi_run(max_partitions_per_run=1)
MONTH_A_RUN = dg.BackfillPolicy.multi_run(max_partitions_per_run=30)


@cache
def manifest() -> dict[str, Any]:
    """Return the prepared manifest; dbt is not run for it."""
    return json.loads(MANIFEST.read_text())


def sliced_dbt_assets(
    name: str,
    select: str,
    partitions: dg.PartitionsDefinition[str],
    policy: dg.BackfillPolicy,
    project_manifest: Any = None,
) -> dg.AssetsDefinition:
    """Return the models of `select`, all materialized as backfill_slices, as assets with these partitions."""

    @dbt_assets(
        manifest=project_manifest or manifest(),
        select=select,
        name=name,
        partitions_def=partitions,
        backfill_policy=policy,
        dagster_dbt_translator=SlicesTranslator(partitions),
        required_resource_keys={"dbt", "io_manager"},
    )
    def build(context: dg.AssetExecutionContext):
        yield from build_slices(context, context.resources.dbt, context.resources.io_manager)

    return build


@dbt_assets(
    manifest=manifest(),
    select="dim_customers",
    name="dbt_dimensions",
    dagster_dbt_translator=SlicesTranslator(),
    required_resource_keys={"dbt", "io_manager"},
)
def dimensions(context: dg.AssetExecutionContext):
    """`dbt snapshot`: one more state for each customer that has changed since the last one."""
    manager = context.resources.io_manager
    with tempfile.TemporaryDirectory(prefix="dbt-") as folder:
        with reaching(manager):
            invocation = context.resources.dbt.cli(
                ["build", "--target", lane_of(context, manager)],
                context=context,
                target_path=Path(folder),
            )
        yield from invocation.stream()


facts = sliced_dbt_assets("dbt_facts", "fct_orders", DAYS, MONTH_A_RUN)
nightly = sliced_dbt_assets("dbt_nightly", "customers_nightly", DAYS, NIGHT_A_RUN)
