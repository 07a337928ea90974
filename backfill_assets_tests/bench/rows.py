"""The slice that everything is measured with: 20,000 rows of five columns."""

from __future__ import annotations

from datetime import date, timedelta

import pyarrow as pa

from backfill_assets.slice import Slice
from backfill_assets.table import SliceColumn, Table
from backfill_assets.window import Window

ROWS = 20_000
FIRST = date(2026, 5, 1)
TABLE = Table("analytics.fct_bench", SliceColumn("sale_date", "date"))


def day_of(number: int) -> date:
    return FIRST + timedelta(days=number)


def slice_of(number: int, table: Table = TABLE) -> Slice:
    return Slice(table, Window.day(day_of(number)))


def rows_of(number: int, rows: int = ROWS) -> pa.Table:
    return pa.table(
        {
            "sale_date": pa.array([day_of(number)] * rows),
            "sale_id": pa.array(range(number * rows, (number + 1) * rows)),
            "customer": pa.array([f"customer {n % 997}" for n in range(rows)]),
            "quantity": pa.array([n % 7 for n in range(rows)]),
            "amount": pa.array([n * 0.25 for n in range(rows)]),
        }
    )
