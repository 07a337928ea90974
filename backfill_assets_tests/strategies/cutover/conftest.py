"""A migration of orders: an old table with a cent less precision, a new one, and the view that readers read."""

from __future__ import annotations

from typing import Any

from backfill_assets.engines import Session
from backfill_assets.strategies.cutover import cutting
from backfill_assets.strategies.cutover.cutting import Status
from backfill_assets.strategies.dual_write import Migration, Side
from backfill_assets.table import SliceColumn, Table
from backfill_assets_tests.warehouses import Warehouse

OLD, NEW, VIEW = "analytics.orders_legacy", "analytics.orders_new", "analytics.orders"
SLICE = SliceColumn("order_date", "date")
ORDERS = Migration(
    "orders",
    old=Side(Table(OLD, SLICE)),
    new=Side(Table(NEW, SLICE)),
    key=("order_id",),
    view=VIEW,
    retire_after_days=0,
)
SAID = "SELECT order_id, source FROM analytics.orders ORDER BY 1"
LOG = "SELECT state FROM backfill.migration_moves WHERE migration = 'orders' ORDER BY number"
WHO: dict[str, Any] = {"by": "ann", "reason": "14 quiet days", "run_id": "run-1"}


def make(warehouse: Warehouse, view: str = f"CREATE VIEW {VIEW} AS SELECT * FROM {OLD}") -> None:
    """Make both tables, each of which says in every row which one it is, and the view of the old one."""
    warehouse.execute(
        "CREATE SCHEMA analytics",
        f"CREATE TABLE {OLD} (order_id BIGINT, order_date DATE, amount DECIMAL(10, 2), source VARCHAR(10))",
        # in another order, wider, and with a column that nobody knows yet
        f"CREATE TABLE {NEW} (source VARCHAR(20), order_date DATE, order_id BIGINT, amount DECIMAL(12, 4), added INT)",
        f"INSERT INTO {OLD} VALUES (1, DATE '2026-05-11', 1.50, 'old'), (2, DATE '2026-05-12', 2.50, 'old')",
        f"INSERT INTO {NEW} VALUES ('new', DATE '2026-05-11', 1, 1.5, 7), ('new', DATE '2026-05-12', 2, 2.5, 7)",
        view,
    )


class Operator:
    """Whoever carries out the moves of a migration in a warehouse, each in a session of its own."""

    def __init__(self, warehouse: Warehouse, migration: Migration = ORDERS) -> None:
        self.warehouse, self.migration, self.told = warehouse, migration, list[str]()

    def cut_over(
        self, *guards: cutting.Guard, session: Session | None = None, **given: Any
    ) -> Status:
        return self._do("cut_over", session, guards, **given)

    def roll_back(
        self, *guards: cutting.Guard, session: Session | None = None, **given: Any
    ) -> Status:
        return self._do("roll_back", session, guards, **given)

    def retire(self, drop_table: str = OLD, session: Session | None = None, **given: Any) -> Status:
        return self._do("retire", session, None, drop_table=drop_table, **given)

    def status(self) -> Status:
        with self.warehouse.session() as session:
            return cutting.status(session, self.migration)

    def _do(self, name: str, session: Session | None, guards: Any, **given: Any) -> Status:
        more = {**WHO, "dry_run": False, "report": self.told.append, **given}
        arguments = () if guards is None else (guards,)
        if session is not None:
            return getattr(cutting, name)(session, self.migration, *arguments, **more)
        with self.warehouse.session() as own:
            return getattr(cutting, name)(own, self.migration, *arguments, **more)

    @property
    def reads(self) -> set[str]:
        """What readers see: 'old', 'new', or both, which must never be."""
        return {source for _, source in self.warehouse.rows(SAID)}

    @property
    def log(self) -> list[str]:
        with self.warehouse.session() as session:
            if session.columns_of("backfill.migration_moves") is None:
                return []
        return [state for (state,) in self.warehouse.rows(LOG)]
