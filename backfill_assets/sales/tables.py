"""The tables of the example, as their owner declares them."""

from __future__ import annotations

from datetime import date

from backfill_assets.expectations import NoRows, RowCount, Source, Totals
from backfill_assets.table import SliceColumn, Table

FIRST_DAY = date(2026, 3, 1)
# nothing is sold, so the source has no row and the slice is rightly empty
HOLIDAY = date(2026, 5, 25)

# what the checks compare the table with: one row for each sale that should be there, and when it reached the source
CONFIRMED = Source(
    """
    SELECT event_at, loaded_at, CAST(qty * unit_price AS DECIMAL(18, 2)) AS amount
    FROM staging.sales_raw
    WHERE status = 'confirmed'
    """,
    on="event_at",
    ingested_at="loaded_at",
)

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
    source=CONFIRMED,
    expects=(
        RowCount(),
        Totals(("amount",)),
        NoRows("no_negative_amounts", "SELECT sale_id, amount FROM slice_rows WHERE amount < 0"),
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
    source=Source("analytics.fct_sales", on="sale_date"),
    expects=(Totals(("quantity", "amount"), tolerance=0),),
)
