"""What the queue makes of a run before it waits in it: its lane, its tables, and a refusal that everyone can read."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import dagster as dg
import pytest
from dagster._core.remote_origin import (
    RegisteredCodeLocationOrigin,
    RemoteJobOrigin,
    RemoteRepositoryOrigin,
)
from dagster._core.run_coordinator.base import SubmitRunContext

from backfill_assets.demo.place import ROOT
from backfill_assets.settings import settings

DAYS = dg.DailyPartitionsDefinition("2020-01-01")


@dg.asset(
    key_prefix=["table"], partitions_def=DAYS, metadata={"schema": "analytics", "table": "Fct"}
)
def fct_key() -> None: ...


@pytest.fixture
def instance(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[dg.DagsterInstance]:
    monkeypatch.setenv("DAGSTER_HOME", str(tmp_path))
    (tmp_path / "dagster.yaml").write_text((ROOT / "dagster.yaml").read_text())
    settings.cache_clear()
    with dg.DagsterInstance.from_config(str(tmp_path)) as found:
        yield found
    settings.cache_clear()


def submitted(instance: dg.DagsterInstance, job: str = "__ASSET_JOB", **tags: str) -> dg.DagsterRun:
    """Submit a run of the asset as webserver and daemon do; the workspace is the asset's own graph."""
    names = {"backfill": "dagster/backfill", "partition": "dagster/partition"}
    repository = dg.Definitions(assets=[fct_key]).get_repository_def()
    workspace: Any = SimpleNamespace(asset_graph=repository.asset_graph)
    run = instance.create_run_for_job(
        repository.get_job(job),
        asset_selection=frozenset([fct_key.key]),
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
