"""Two tables to compare, wherever they may be."""

from __future__ import annotations

from pathlib import Path

import pytest

from backfill_assets_tests.strategies.reconcile.two_sides import PLACES, Two
from backfill_assets_tests.warehouses import Warehouse


@pytest.fixture(params=PLACES)
def two(request: pytest.FixtureRequest, tmp_path: Path) -> Two:
    """Two sides: in one warehouse, in two of other engines, and parquet files beside a table."""
    old, _, new = request.param.partition("_and_")
    if old == "files":
        legacy = Warehouse(f"duckdb:///{tmp_path}/legacy.duckdb")
        return Two(legacy, request.getfixturevalue(new), tmp_path / "orders_old.parquet")
    first: Warehouse = request.getfixturevalue(old)
    return Two(first, request.getfixturevalue(new) if new else first)
