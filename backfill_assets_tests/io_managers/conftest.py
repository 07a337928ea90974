"""A warehouse, an IO manager over it and short ways to materialize and to look into the table."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from backfill_assets.engines import open_engine
from backfill_assets.io_managers import DeleteInsertIOManager
from backfill_assets_tests.conftest import ENGINES


class Warehouse:
    """One warehouse with the IO manager under test."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.instance = dg.DagsterInstance.ephemeral()
        self.io_manager = DeleteInsertIOManager(url=self.url)

    def run(
        self, *assets: dg.AssetsDefinition, ok: bool = True, **options: Any
    ) -> dg.ExecuteInProcessResult:
        """Materialize without raising; `ok` says whether the run is expected to succeed."""
        result = dg.materialize(
            assets,
            instance=self.instance,
            resources={"io_manager": self.io_manager},
            raise_on_error=False,
            **options,
        )
        assert result.success is ok, [e.message for e in result.all_events if e.is_failure]
        return result

    def run_range(self, first: str, last: str, *assets: dg.AssetsDefinition, **options: Any):
        """Materialize a range of partitions in one run, as a single-run backfill does."""
        edges = {
            "dagster/asset_partition_range_start": first,
            "dagster/asset_partition_range_end": last,
        }
        return self.run(*assets, tags={**edges, **options.pop("tags", {})}, **options)

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        with open_engine(self.url).session(read_only=True) as session:
            return session.fetch(sql)

    def execute(self, *statements: str) -> None:
        with open_engine(self.url).session() as session:
            for statement in statements:
                session.execute(statement)


def failure_of(result: dg.ExecuteInProcessResult) -> str:
    """Return the sentence that a failed run shows for its step, or for the IO manager that did not let it begin."""
    failed = result.filter_events(
        lambda event: event.is_step_failure or event.event_type_value == "RESOURCE_INIT_FAILURE"
    )
    assert len(failed) == 1, failed
    (event,) = failed
    if event.is_step_failure:
        error = event.step_failure_data.error
    else:
        wrapped = event.engine_event_data.error  # Dagster's own, around ours
        error = wrapped.cause if wrapped is not None else None
    assert error is not None
    return error.message


@pytest.fixture
def warehouse(tmp_path: Path) -> Warehouse:
    return Warehouse(f"duckdb:///{tmp_path}/warehouse.duckdb")


@pytest.fixture(params=ENGINES)
def either(request: pytest.FixtureRequest, tmp_path: Path) -> Warehouse:
    """A warehouse of each engine in turn, for what concerns the rows that are written."""
    if request.param == "duckdb":
        return Warehouse(f"duckdb:///{tmp_path}/warehouse.duckdb")
    return Warehouse(request.getfixturevalue("postgres_url"))
