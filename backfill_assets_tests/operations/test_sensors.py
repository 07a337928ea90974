"""The breaker's second eye: every failed run of a backfill is seen, but for those that were refused or held."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import dagster as dg
import pytest

from backfill_assets.controls.held import HELD, REFUSED
from backfill_assets.controls.switch import Switch
from backfill_assets.operations.sensors import backfill_circuit_breaker


@dg.asset
def strict() -> None: ...


@dg.asset(metadata={"on_failure": "continue"})
def lenient() -> None: ...


defs = dg.Definitions(
    assets=[strict, lenient],
    jobs=[dg.define_asset_job("lenient_job", selection=[lenient])],
    sensors=[backfill_circuit_breaker],
)


@pytest.fixture
def instance(tmp_path: Path) -> Iterator[dg.DagsterInstance]:
    with dg.DagsterInstance.ephemeral(tempdir=str(tmp_path)) as found:
        yield found


def seen(
    instance: dg.DagsterInstance, *assets: str, job: str = "__ASSET_JOB", **tags: str
) -> list[str]:
    """Let a run fail that has never started, show it to the sensor, and return what is paused."""
    repository = defs.get_repository_def()
    run = instance.create_run_for_job(
        repository.get_job(job),
        asset_selection=frozenset(map(dg.AssetKey, assets)) or None,
        tags={"dagster/backfill": "b1", "lane": "backfill", **tags},
    )
    instance.report_run_failed(run, message="the image was not found")
    record = instance.get_run_record_by_id(run.run_id)
    assert record is not None
    assert record.start_time is None
    failed = next(
        event
        for entry in instance.all_logs(run.run_id)
        if (event := entry.dagster_event) and event.event_type == dg.DagsterEventType.RUN_FAILURE
    )
    context = dg.build_run_status_sensor_context(
        sensor_name="backfill_circuit_breaker",
        dagster_event=failed,
        dagster_instance=instance,
        dagster_run=record.dagster_run,
        repository_def=repository,
    ).for_run_failure()
    backfill_circuit_breaker(context)
    return [pause.reason for pause in Switch(instance).pauses()]


def test_a_run_that_could_not_be_started_pauses_its_backfill(instance: dg.DagsterInstance) -> None:
    (said,) = seen(instance, "strict")
    assert "failed at strict: the image was not found" in said


@pytest.mark.parametrize("mark", [HELD, REFUSED])
def test_a_run_that_was_refused_or_held_pauses_nothing(
    instance: dg.DagsterInstance, mark: str
) -> None:
    assert seen(instance, "strict", **{mark: "yes"}) == []


def test_a_killed_run_is_judged_by_what_its_tables_declare(instance: dg.DagsterInstance) -> None:
    assert seen(instance, "lenient") == []
    assert seen(instance, job="lenient_job") == []
    assert len(seen(instance, "lenient", "strict")) == 1
