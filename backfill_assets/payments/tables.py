"""The table of the example, and the days of which the events are kept."""

from __future__ import annotations

from datetime import date, datetime, timezone

from backfill_assets.expectations import NoRows
from backfill_assets.table import SliceColumn, Table

# the table is older than what the stream keeps, as tables are
FIRST_PARTITION = date(2026, 4, 27)
FIRST_DAY, LAST_DAY = date(2026, 5, 3), date(2026, 5, 16)
KEPT_SINCE = datetime(2026, 5, 2, 23, tzinfo=timezone.utc)

FCT_PAYMENTS = Table(
    "analytics.fct_payments",
    SliceColumn("paid_on", kind="date", zone="UTC"),
    unique_key=("payment_id",),
    columns={
        "paid_on": "DATE",
        "payment_id": "BIGINT",
        "currency": "VARCHAR",
        "amount": "DECIMAL(18,2)",
    },
    expects=(
        NoRows(
            "no_yen_in_parts",
            "SELECT payment_id FROM slice_rows WHERE currency = 'JPY' AND amount <> floor(amount)",
        ),
    ),
)
