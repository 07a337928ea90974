"""Names of tables, and what they are the same as: every name can be made, and a table has one history by all of them."""

from __future__ import annotations

from datetime import date

import pytest

from backfill_assets.table import SliceColumn, Table
from backfill_assets_tests.warehouses import Warehouse

DAY = "2026-05-03"
COLUMN = SliceColumn("day", "date")
ROWS = {"day": [date(2026, 5, 3)], "said": ["hello"]}


@pytest.mark.parametrize(
    "name",
    [
        "time",
        "datetime",
        "relation",
        "self",
        "T",
        "Any",
        "Path",
        "session",
        "duckdb",
        "csv",
        "parquet",
        "json",
    ],
)
def test_a_table_may_be_called_like_a_variable_or_a_kind_of_file(
    warehouse: Warehouse, name: str
) -> None:
    warehouse.write(Table(name, COLUMN, schema="dim"), DAY, ROWS)
    warehouse.write(Table(name, COLUMN, schema="dim"), DAY, ROWS)
    assert warehouse.count(f'dim."{name}"') == 1
