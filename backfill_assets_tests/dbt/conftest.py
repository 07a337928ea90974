"""A dbt project of the test's own over a small source with two rows a day, on each engine that dbt runs on here."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from backfill_assets.controls.switch import Switch
from backfill_assets_tests.dbt import location
from backfill_assets_tests.dbt.places import FCT, Place
from backfill_assets_tests.dbt.projects import Project, copied, sample
from backfill_assets_tests.operations.daemon import Daemon, daemon_for
from backfill_assets_tests.warehouses import Warehouse

SOURCES = """
sources:
  - name: raw
    schema: raw
    tables: [{name: events}, {name: changing, config: {meta: {source_mutable: true}}}]
"""
EVENTS = (
    "CREATE SCHEMA IF NOT EXISTS raw",
    "CREATE TABLE raw.events (id BIGINT, happened TIMESTAMPTZ, amount DECIMAL(18,2), note TEXT)",
    """INSERT INTO raw.events
       SELECT 10 * d + n, CAST('2026-03-01 00:00:00+00' AS TIMESTAMPTZ) + d * INTERVAL '1 day' + n * INTERVAL '12 hours',
         CAST(d + n AS DECIMAL(18,2)), 'note'
       FROM generate_series(0, 9) AS days (d) CROSS JOIN generate_series(0, 1) AS numbers (n)""",
    "CREATE TABLE raw.changing AS SELECT * FROM raw.events",
)


@pytest.fixture
def project(warehouse: Warehouse, tmp_path: Path) -> Project:
    """The macros alone, over `raw.events`: two rows a day from 2026-03-01 to 10, the first at midnight."""
    warehouse.execute(*EVENTS)
    found = copied(warehouse, tmp_path)
    found.write("models/sources.yml", SOURCES)
    return found


@pytest.fixture
def sample_project(warehouse: Warehouse, tmp_path: Path) -> Project:
    """The sample's own project."""
    return sample(warehouse, tmp_path)


def model(
    config: str = "",
    select: str = "id, amount, note",
    where: str = "{{ in_slice('happened') }}",
    source: str = "{{ source('raw', 'events') }}",
    day: str = "CAST(happened AT TIME ZONE 'UTC' AS DATE)",
) -> str:
    """Return a model of daily slices; `config` follows what each of them has."""
    return (
        "{{ config(slice_column='day', unique_key='id'" + config + ") }}\n"
        f"SELECT {day} AS day, {select} FROM {source} WHERE {where}"
    )


@pytest.fixture(scope="module")
def daemon() -> Iterator[Daemon]:
    with daemon_for(Path(location.__file__)) as running:
        yield running


@pytest.fixture
def place(daemon: Daemon, warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch) -> Iterator[Place]:
    """The dbt location over the sample's orders; nothing of it is loaded yet."""
    monkeypatch.setenv("LATE_TEST_URL", warehouse.url)
    found = Place(daemon, warehouse)
    yield found
    for pause in found.pauses():
        Switch(daemon.instance).resume(pause.scope, "the test is over", "the test")
    daemon.instance.wipe_assets([FCT])
