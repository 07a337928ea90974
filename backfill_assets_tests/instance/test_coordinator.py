"""What the queue makes of a run before it waits in it: its lane, its tables, and a refusal that everyone can read."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import dagster as dg
import pytest
from dagster._core.events import DagsterEvent, DagsterEventType
from dagster._core.remote_origin import (
    RegisteredCodeLocationOrigin,
    RemoteJobOrigin,
    RemoteRepositoryOrigin,
)
from dagster._core.run_coordinator.base import SubmitRunContext
from dagster._utils.tags import TagConcurrencyLimitsCounter

from backfill_assets.controls.gate import Held
from backfill_assets.controls.held import marking_held
from backfill_assets.controls.switch import AlreadyPaused, Scope, Switch
from backfill_assets.demo.place import ROOT
from backfill_assets.operations.jobs import scope_in
from backfill_assets.settings import settings

DAYS = dg.DailyPartitionsDefinition("2020-01-01")


@dg.asset(
    key_prefix=["table"], partitions_def=DAYS, metadata={"schema": "analytics", "table": "Fct"}
)
def fct_key() -> None: ...


@dg.asset(key_prefix=["table"], partitions_def=DAYS, pool="warehouse")
def pooled() -> None: ...


@dg.job
def looks_around() -> None: ...


@pytest.fixture
def instance(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[dg.DagsterInstance]:
    monkeypatch.setenv("DAGSTER_HOME", str(tmp_path))
    (tmp_path / "dagster.yaml").write_text((ROOT / "dagster.yaml").read_text())
    settings.cache_clear()
    with dg.DagsterInstance.from_config(str(tmp_path)) as found:
        yield found
    settings.cache_clear()


def submitted(
    instance: dg.DagsterInstance,
    job: str = "__ASSET_JOB",
    asset: dg.AssetsDefinition = fct_key,
    **tags: str,
) -> dg.DagsterRun:
    """Submit a run of the asset as webserver and daemon do; the workspace is the asset's own graph."""
    names = {"backfill": "dagster/backfill", "partition": "dagster/partition"}
    repository = dg.Definitions(assets=[fct_key, pooled], jobs=[looks_around]).get_repository_def()
    graph: Any = repository.asset_graph
    graph.asset_keys_for_job = lambda _: set()
    workspace: Any = SimpleNamespace(asset_graph=graph)
    definition = repository.get_job(job)
    if job == "__ASSET_JOB":
        definition = definition.get_subset(asset_selection={asset.key})
    run = instance.create_run_for_job(
        definition,
        asset_selection=frozenset([asset.key]) if job == "__ASSET_JOB" else None,
        tags={names.get(key, key): value for key, value in tags.items()},
        remote_job_origin=RemoteJobOrigin(
            RemoteRepositoryOrigin(RegisteredCodeLocationOrigin("location"), "__repository__"), job
        ),
        job_code_origin=None,
    )
    instance.run_coordinator.submit_run(SubmitRunContext(run, workspace))
    found = instance.get_run_by_id(run.run_id)
    assert found is not None
    return found


def test_nobody_can_make_an_old_day_live(instance: dg.DagsterInstance) -> None:
    run = submitted(instance, partition="2020-01-01", lane="live", lane_why="I say so")
    assert run.tags["lane"] == "backfill"
    assert run.tags["lane_why"].startswith("its partition ended ")


def test_a_refused_run_is_marked_and_its_repetition_is_not(instance: dg.DagsterInstance) -> None:
    refused = submitted(instance, partition="1999-01-01")
    assert refused.status == dg.DagsterRunStatus.FAILURE
    assert refused.tags["refused"] == "yes"
    again = submitted(instance, partition="2020-01-01", refused="yes")
    assert again.status == dg.DagsterRunStatus.QUEUED
    assert again.tags["refused"] == "no"


def test_what_kubernetes_is_told_of_backfills_is_on_their_runs_alone(
    instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = '{"container_config": {"resources": {"limits": {"cpu": "4"}}}}'
    monkeypatch.setenv("BACKFILL_LANE_K8S_CONFIG", config)
    settings.cache_clear()
    old = submitted(instance, partition="2020-01-01")
    assert old.tags["dagster-k8s/config"] == config
    assert "dagster-k8s/config" not in submitted(instance).tags


@pytest.mark.parametrize(
    "name", ["analytics.fct", "ANALYTICS.FCT", "table/fct_key", "table.fct_key"]
)
def test_a_pause_of_a_table_keeps_its_runs_in_the_queue_by_whichever_name(
    instance: dg.DagsterInstance, name: str
) -> None:
    """Dagster's own counter, over the limits that its daemon is given: the table is called otherwise than the asset."""
    repository = dg.Definitions(assets=[fct_key]).get_repository_def()
    scope = scope_in(repository, Scope(table=name))
    run = submitted(instance, partition="2020-01-01")
    assert not blocked(instance, run)
    Switch(instance).pause(scope, "the source is wrong", "ana")
    assert blocked(instance, run)
    assert scope_in(repository, Scope(table="analytics/fct")) == scope
    with pytest.raises(AlreadyPaused):
        Switch(instance).pause(scope_in(repository, Scope(table="Analytics.Fct")), "too", "bob")
    Switch(instance).resume(Scope(table="ANALYTICS/fct"), "mended", "ana")
    assert not blocked(instance, run)


def test_a_run_that_was_held_at_a_table_that_only_its_io_manager_knows_waits_for_it_in_the_queue(
    instance: dg.DagsterInstance,
) -> None:
    run = submitted(instance, partition="2020-01-01")
    Switch(instance).pause(Scope(table="elsewhere.fct"), "the source is wrong", "ana")
    assert not blocked(instance, run)
    with pytest.raises(Held), marking_held(instance, run, ["elsewhere.fct"]):
        raise Held("a slice was not begun", "paused by ana", "Wait")
    (found,) = instance.get_runs()
    assert blocked(instance, submitted(instance, partition="2020-01-01", **found.tags))


def blocked(instance: dg.DagsterInstance, run: dg.DagsterRun) -> bool:
    queue = instance.get_concurrency_config().run_queue_config
    assert queue is not None
    return TagConcurrencyLimitsCounter(queue.tag_concurrency_limits, []).is_blocked(run)


def test_a_reason_that_is_demanded_always_is_demanded_of_what_writes_an_asset(
    instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BACKFILL_REQUIRE_REASON", "always")
    settings.cache_clear()
    assert submitted(instance, partition="2020-01-01").status == dg.DagsterRunStatus.FAILURE
    assert submitted(instance, job="looks_around").status == dg.DagsterRunStatus.QUEUED


def test_backfills_that_wait_for_a_pool_of_one_do_not_hold_a_live_run_back(
    instance: dg.DagsterInstance,
) -> None:
    """Dagster's own choice of what leaves the queue, with five backfill runs of a full pool at its head."""
    from dagster._daemon.run_coordinator import QueuedRunCoordinatorDaemon

    instance.event_log_storage.set_concurrency_slots("warehouse", 1)
    waiting = [
        submitted(instance, asset=pooled, partition=f"2020-01-0{day}", priority="0")
        for day in range(1, 6)
    ]
    live = submitted(instance)
    with QueuedRunCoordinatorDaemon(1) as daemon:
        chosen = daemon._get_runs_to_dequeue(instance, instance.get_concurrency_config(), None)
        assert live.run_id in {run.run_id for run in chosen}
        assert len({run.run_id for run in chosen} & {run.run_id for run in waiting}) == 1
        for run in chosen:
            starting = DagsterEvent(DagsterEventType.PIPELINE_STARTING.value, run.job_name)
            instance.report_dagster_event(starting, run.run_id)
        late = submitted(instance)
        chosen = daemon._get_runs_to_dequeue(instance, instance.get_concurrency_config(), None)
    assert [run.run_id for run in chosen] == [late.run_id]
