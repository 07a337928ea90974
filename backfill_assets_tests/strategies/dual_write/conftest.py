"""A warehouse of each engine in turn, with the IO manager that writes to it."""

from __future__ import annotations

from pathlib import Path

import pytest

from backfill_assets_tests.io_managers.conftest import Warehouse


@pytest.fixture
def warehouse(request: pytest.FixtureRequest, tmp_path: Path) -> Warehouse:
    if request.param == "postgres":
        return Warehouse(request.getfixturevalue("postgres").url)
    return Warehouse(f"duckdb:///{tmp_path / 'warehouse.duckdb'}")
