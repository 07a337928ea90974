"""The dbt location with a daemon that is asked to look, over a warehouse with the sample's orders."""

from __future__ import annotations

from typing import Any

import dagster as dg

from backfill_assets.controls.switch import Pause, Switch
from backfill_assets.dbt import raw
from backfill_assets.operations.launching import request_backfill
from backfill_assets_tests.operations.daemon import Daemon
from backfill_assets_tests.warehouses import Warehouse

FCT = dg.AssetKey(["analytics", "fct_orders"])
# what `dbt snapshot` makes of customers who have not moved yet
_DIMENSION = (
    "CREATE SCHEMA IF NOT EXISTS analytics",
    """CREATE TABLE analytics.dim_customers AS
       SELECT *, updated_at AS dbt_valid_from, CAST(NULL AS TIMESTAMPTZ) AS dbt_valid_to FROM raw.customers""",
)


def day(number: int) -> str:
    return f"2026-03-{number:02}"


def days(first: int, last: int) -> list[str]:
    return [day(number) for number in range(first, last + 1)]


class Place:
    """The location and its warehouse."""

    def __init__(self, daemon: Daemon, warehouse: Warehouse) -> None:
        self.daemon, self.warehouse = daemon, warehouse
        raw.prepare(warehouse.engine())
        warehouse.execute(*_DIMENSION)

    @property
    def instance(self) -> dg.DagsterInstance:
        return self.daemon.instance

    def request(self, wanted: list[str], **tags: str) -> str:
        """Request a backfill of days of fct_orders, and return its id."""
        graph = self.daemon.workspace.create_request_context().asset_graph
        tags = {"reason": "a test", **tags}
        given = {name.replace("_", "/", 1): value for name, value in tags.items() if value}
        return request_backfill(self.instance, graph, {FCT: wanted}, given)

    def backfill(self, wanted: list[str], **tags: str) -> tuple[str, str]:
        """Let a backfill end, and return its id and status."""
        found = self.request(wanted, **tags)
        return found, self.daemon.end(found)

    def spoil(self, of_day: str) -> int:
        """Take the customer from one confirmed order of a day, and return who it was."""
        order, customer = self.warehouse.rows(
            f"SELECT order_id, customer_id FROM raw.orders WHERE status = 'confirmed' AND {_on(of_day)} ORDER BY 1"
        )[0]
        self.warehouse.execute(f"UPDATE raw.orders SET customer_id = NULL WHERE order_id = {order}")
        return customer

    def mend(self, customer: int) -> None:
        self.warehouse.execute(
            f"UPDATE raw.orders SET customer_id = {customer} WHERE customer_id IS NULL"
        )

    def loads(self, backfill: str | None = None) -> list[str]:
        """Return the days that were committed, in their order."""
        where = f"backfill_id = '{backfill}'" if backfill else "1 = 1"
        found = self.warehouse.rows(
            "SELECT partition_key FROM backfill.load_audit"
            f" WHERE outcome = 'committed' AND {where} ORDER BY committed_at"
        )
        return [row[0] for row in found]

    def wanted(self, of_day: str) -> int:
        """Return how many rows the day should have."""
        return self.warehouse.count("raw.orders", f"status = 'confirmed' AND {_on(of_day)}")

    def said(self, backfill: str) -> str:
        """Return what the last run of a backfill said when it failed."""
        run = self.daemon.runs(backfill)[-1]
        logs = self.instance.all_logs(run.run_id, of_type=dg.DagsterEventType.STEP_FAILURE)
        data: Any = logs[-1].get_dagster_event().step_failure_data
        return data.error.message

    def pauses(self) -> list[Pause]:
        return Switch(self.instance).pauses()


def _on(of_day: str) -> str:
    return (
        f"ordered_at >= CAST('{of_day} 00:00:00+00' AS TIMESTAMPTZ)"
        f" AND ordered_at < CAST('{of_day} 00:00:00+00' AS TIMESTAMPTZ) + INTERVAL '1 day'"
    )
