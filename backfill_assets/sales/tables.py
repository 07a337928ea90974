"""The tables of the example, as their owner declares them."""

from __future__ import annotations

from datetime import date

from backfill_assets.expectations import Source
from backfill_assets.table import SliceColumn, Table

FIRST_DAY = date(2026, 3, 1)
# nothing is sold, so the source has no row and the slice is rightly empty
HOLIDAY = date(2026, 5, 25)

FCT_SALES = Table(
    "analytics.fct_sales",
    SliceColumn("sale_date", kind="date", zone="UTC"),
    unique_key=("sale_id",),
    columns={
        "sale_date": "DATE",
        "sale_id": "BIGINT",
        "customer_id": "BIGINT",
        "product_id": "BIGINT",
        "quantity": "BIGINT",
        "amount": "DECIMAL(18,2)",
    },
    allow_empty=frozenset({HOLIDAY}),
    source=Source(
        "SELECT * FROM staging.sales_raw WHERE status = 'confirmed'",
        on="event_at",
        ingested_at="loaded_at",
    ),
)

DAILY_PRODUCT_SALES = Table(
    "analytics.daily_product_sales",
    SliceColumn("sale_date", kind="date", zone="UTC"),
    unique_key=("sale_date", "product_id"),
    columns={
        "sale_date": "DATE",
        "product_id": "BIGINT",
        "quantity": "BIGINT",
        "amount": "DECIMAL(18,2)",
    },
    allow_empty=frozenset({HOLIDAY}),
)
