"""The sample's models through Dagster: one dbt invocation for a range, and the truth for each of its days."""

from __future__ import annotations

from typing import Any

import dagster as dg
from dagster_dbt import DbtCliResource

from backfill_assets.dbt import raw
from backfill_assets.dbt.assets import dimensions, facts
from backfill_assets.dbt.place import DBT, PROJECT
from backfill_assets.io_managers import DeleteInsertIOManager
from backfill_assets_tests.warehouses import Warehouse

RANGE = ("dagster/asset_partition_range_start", "dagster/asset_partition_range_end")


def launched(
    warehouse: Warehouse, instance: dg.DagsterInstance, asset: Any, **tags: str
) -> dg.ExecuteInProcessResult:
    return dg.materialize(
        [asset],
        instance=instance,
        tags=tags,
        partition_key=tags.get("dagster/partition"),
        raise_on_error=False,
        resources={
            "dbt": DbtCliResource(
                project_dir=str(PROJECT), profiles_dir=str(PROJECT), dbt_executable=DBT
            ),
            "io_manager": DeleteInsertIOManager(url=warehouse.url),
        },
    )


def checked(instance: dg.DagsterInstance, run: str, name: str) -> dict[str | None, bool]:
    """Return by partition what the check said last in a run."""
    logged = instance.all_logs(run, of_type=dg.DagsterEventType.ASSET_CHECK_EVALUATION)
    found = [entry.dagster_event.event_specific_data for entry in logged]
    return {each.partition: each.passed for each in found if each.check_name == name}


def materialized(result: dg.ExecuteInProcessResult) -> dict[str | None, dict[str, Any]]:
    found = result.get_asset_materialization_events()
    return {
        event.partition: {key: value.value for key, value in event.materialization.metadata.items()}
        for event in found
    }


def test_a_range_is_one_invocation_and_a_day_whose_test_fails_leaves_it_and_those_after_it_alone(
    warehouse: Warehouse,
) -> None:
    raw.prepare(warehouse.engine())
    instance = dg.DagsterInstance.ephemeral()
    assert launched(warehouse, instance, dimensions).success
    spoiled = "WHERE order_id IN (SELECT max(order_id) FROM raw.orders WHERE status = 'confirmed' AND ordered_at < CAST('2026-03-04 00:00:00+00' AS TIMESTAMPTZ))"
    (customer,) = warehouse.rows(f"SELECT customer_id FROM raw.orders {spoiled}")[0]
    warehouse.execute(f"UPDATE raw.orders SET customer_id = NULL {spoiled}")
    tags = {RANGE[0]: "2026-03-01", RANGE[1]: "2026-03-05", "reason": "a first load"}
    stopped = launched(warehouse, instance, facts, **tags)
    assert not stopped.success
    (failure,) = [e for e in stopped.all_events if e.is_step_failure]
    said = failure.step_failure_data.error.message
    assert "analytics.fct_orders 2026-03-03 failed, partition 3 of 5 in this run" in said
    assert (
        "its tests failed before the commit: 1 rows of the day fail it (not_null_fct_orders_customer_id)"
        in said
    )
    fct = dg.AssetKey(["analytics", "fct_orders"])
    assert instance.get_materialized_partitions(fct) == {"2026-03-01", "2026-03-02"}
    not_null = checked(instance, stopped.run_id, "not_null_fct_orders_customer_id")
    assert {day: not_null[day] for day in ("2026-03-01", "2026-03-02", "2026-03-03")} == {
        "2026-03-01": True,
        "2026-03-02": True,
        "2026-03-03": False,
    }
    invocations = [e for e in stopped.all_events if e.is_step_start]
    assert len(invocations) == 1
    assert [row[0] for row in warehouse.loads()] == ["2026-03-01", "2026-03-02"]

    warehouse.execute(f"UPDATE raw.orders SET customer_id = {customer} {spoiled}")
    rest = launched(warehouse, instance, facts, **{**tags, RANGE[0]: "2026-03-03"})
    assert rest.success
    told = materialized(rest)
    audit = {
        row[0]: row[1]
        for row in warehouse.rows(
            "SELECT partition_key, audit_id FROM backfill.load_audit WHERE outcome = 'committed'"
        )
    }
    assert {day: told[day]["audit_id"] for day in told} == {
        d: audit[d] for d in ("2026-03-03", "2026-03-04", "2026-03-05")
    }
    assert all(checked(instance, rest.run_id, "unique_fct_orders_order_id")[day] for day in told)

    one = launched(
        warehouse, instance, facts, **{"dagster/partition": "2026-03-02", "reason": "again"}
    )
    assert one.success
    assert checked(instance, one.run_id, "unique_fct_orders_order_id")["2026-03-02"]
    lanes = warehouse.rows("SELECT DISTINCT lane FROM backfill.load_audit")
    assert lanes == [("backfill",)]
