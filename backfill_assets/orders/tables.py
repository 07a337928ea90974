"""The tables of both paths, the view of the readers, and the migration between them."""

from __future__ import annotations

from datetime import date

from backfill_assets.strategies.dual_write.migration import Migration
from backfill_assets.strategies.dual_write.side import Side
from backfill_assets.table import SliceColumn, Table

FIRST_DAY = date(2026, 5, 1)
VIEW = "analytics.orders"

_COLUMNS = {
    "order_date": "DATE",
    "order_id": "BIGINT",
    "ordered_at": "TIMESTAMPTZ",
    "customer_id": "BIGINT",
    "country": "VARCHAR",
    "amount": "DECIMAL(18,2)",
}


def _table(name: str) -> Table:
    column = SliceColumn("order_date", kind="date", zone="UTC")
    return Table(name, column, unique_key=("order_id",), columns=_COLUMNS)


FCT_ORDERS_LEGACY = _table("analytics.fct_orders_legacy")
FCT_ORDERS_NEW = _table("analytics.fct_orders_new")

ORDERS_MIGRATION = Migration(
    "orders",
    old=Side(FCT_ORDERS_LEGACY),
    new=Side(FCT_ORDERS_NEW),
    key=("order_id",),
    measures=("amount",),
    view=VIEW,
    quiet_days=14,
    due_hours=1,
)
