"""Orders by both paths, and the reconciliation of them: what a migration of your own looks like."""

import dagster as dg

from backfill_assets.orders.feed import read
from backfill_assets.orders.paths import legacy_today, new
from backfill_assets.orders.tables import FIRST_DAY, ORDERS_MIGRATION
from backfill_assets.strategies.cutover.jobs import cutover_jobs
from backfill_assets.strategies.dual_write import dual_write_assets
from backfill_assets.strategies.reconcile.asset import (
    reconciliation_asset,
    reconciliation_checks,
    reconciliation_schedule,
)

DAYS = dg.DailyPartitionsDefinition(start_date=FIRST_DAY.isoformat(), timezone="UTC")
OLD, NEW = ("analytics", "fct_orders_legacy"), ("analytics", "fct_orders_new")

orders_pair = dual_write_assets(
    ORDERS_MIGRATION,
    partitions_def=DAYS,
    read=read,
    old=legacy_today,
    new=new,
    old_key=OLD,
    new_key=NEW,
    max_partitions_per_run=31,
    group_name="orders",
    code_versions=("2", "1"),
)

reconciliation = reconciliation_asset(
    ORDERS_MIGRATION, partitions_def=DAYS, deps=[dg.AssetKey(OLD), dg.AssetKey(NEW)]
)
checks = reconciliation_checks(ORDERS_MIGRATION, partitions_def=DAYS)

reconcile = dg.define_asset_job("reconcile", selection=dg.AssetSelection.assets(reconciliation))
nightly = reconciliation_schedule(ORDERS_MIGRATION, reconcile, partitions_def=DAYS)

moves = cutover_jobs([ORDERS_MIGRATION])
