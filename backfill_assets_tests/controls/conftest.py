"""Instances to keep switches in: one in SQLite on disk, and one in a real PostgreSQL."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import dagster as dg
import pytest

from backfill_assets.demo.place import ROOT


@pytest.fixture(params=["sqlite", "postgres"])
def instance(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[dg.DagsterInstance]:
    """An instance of the project's own dagster.yaml."""
    monkeypatch.setenv("DAGSTER_HOME", str(tmp_path))
    if request.param == "postgres":
        warehouse = request.getfixturevalue("postgres")
        monkeypatch.setenv("BACKFILL_DAGSTER_PG_URL", warehouse.url)
    shutil.copyfile(ROOT / "dagster.yaml", tmp_path / "dagster.yaml")
    with dg.DagsterInstance.from_config(str(tmp_path)) as found:
        yield found
