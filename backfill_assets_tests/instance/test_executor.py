"""The location's executor feels a failed step of a backfill at once, be it an asset or a blocking check."""

import os
from pathlib import Path

import dagster as dg
import pytest
from dagster._core.definitions.reconstruct import ReconstructableRepository

from backfill_assets.controls.switch import Switch
from backfill_assets.instance.executor import lane_executor


@dg.asset
def failing() -> None:
    raise ValueError("12 rows of 13")


@dg.asset(metadata={"on_failure": "continue"})
def failing_and_going_on() -> None:
    raise ValueError("never mind")


@dg.asset(metadata={"on_failure": 2})
def failing_twice() -> None:
    raise ValueError("once more")


@dg.asset
def checked() -> None: ...


@dg.asset_check(asset=checked, blocking=True)
def never_right() -> dg.AssetCheckResult:
    return dg.AssetCheckResult(passed=False, metadata={"found": 12})


@dg.asset
def where() -> None:
    Path(os.environ["WHERE"]).write_text(str(os.getpid()))


assets = [failing, failing_and_going_on, failing_twice, checked, where]
defs = dg.Definitions(
    assets=assets,
    asset_checks=[never_right],
    executor=lane_executor,
    jobs=[dg.define_asset_job(f"run_{asset.key.path[0]}", selection=[asset]) for asset in assets],
)


@pytest.fixture
def instance(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("DAGSTER_HOME", str(tmp_path))
    (tmp_path / "dagster.yaml").write_text("telemetry: {enabled: false}")
    with dg.DagsterInstance.from_config(str(tmp_path)) as found:
        yield found


def run(instance: dg.DagsterInstance, asset: str, **tags: str) -> bool:
    names = {"backfill": "dagster/backfill"}
    location = ReconstructableRepository.for_file(__file__, "defs")
    with dg.execute_job(
        location.get_reconstructable_job(f"run_{asset}"),
        instance=instance,
        tags={names.get(key, key): value for key, value in tags.items()},
        raise_on_error=False,
    ) as result:
        return result.success


def paused(instance: dg.DagsterInstance) -> list[str]:
    return [f"{pause.scope.name}: {pause.reason}" for pause in Switch(instance).pauses()]


def test_a_failing_asset_pauses_its_backfill(instance: dg.DagsterInstance) -> None:
    assert not run(instance, "failing", backfill="b1", lane="backfill")
    (said,) = paused(instance)
    assert said.startswith("backfill b1: run ")
    assert "failed at failing: ValueError: 12 rows of 13" in said


def test_a_blocking_check_that_fails_pauses_its_backfill(instance: dg.DagsterInstance) -> None:
    assert not run(instance, "checked", backfill="b1", lane="backfill")
    (said,) = paused(instance)
    assert "failed at checked: " in said
    assert "never_right" in said


def test_a_table_says_itself_how_many_failures_it_bears(instance: dg.DagsterInstance) -> None:
    run(instance, "failing_and_going_on", backfill="b1", lane="backfill")
    run(instance, "failing_twice", backfill="b2", lane="backfill")
    assert paused(instance) == []
    run(instance, "failing_twice", backfill="b2", lane="backfill")
    assert [said.partition(":")[0] for said in paused(instance)] == ["backfill b2"]


def test_a_live_run_that_fails_pauses_nothing(instance: dg.DagsterInstance) -> None:
    assert not run(instance, "failing", lane="live")
    assert paused(instance) == []


def test_backfills_run_in_their_own_process_and_live_runs_in_others(
    instance: dg.DagsterInstance, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WHERE", str(tmp_path / "where"))
    assert run(instance, "where", lane="backfill")
    assert (tmp_path / "where").read_text() == str(os.getpid())
    assert run(instance, "where", lane="live")
    assert (tmp_path / "where").read_text() != str(os.getpid())
