"""The location's executor feels a failed step of a backfill at once, be it an asset or a blocking check."""

import os
import signal
import sys
import time
from pathlib import Path

import dagster as dg
import pytest
from dagster._core.definitions.reconstruct import ReconstructableRepository

from backfill_assets.controls.gate import END_THE_PAUSE, Held
from backfill_assets.controls.store import Store
from backfill_assets.controls.switch import Switch
from backfill_assets.instance.executor import lane_executor
from backfill_assets.io_managers.reporting import as_failure
from backfill_assets.settings import settings


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


@dg.multi_asset(
    specs=[
        dg.AssetSpec("goes_on", metadata={"on_failure": "continue"}, skippable=True),
        dg.AssetSpec("says_nothing", skippable=True),
    ],
    can_subset=True,
)
def two_at_once():
    raise ValueError("both of them")


@dg.asset(metadata={"on_failure": "pausse"})
def misspelled() -> None:
    raise ValueError("12 rows of 13")


@dg.asset
def held() -> None:
    with as_failure():
        raise Held("a slice was not begun", "paused by ana", f"{END_THE_PAUSE}, then launch it")


@dg.asset(deps=[])
def failing_beside_it() -> None:
    raise ValueError("a failure of its own")


@dg.asset
def told_to_end() -> None:
    os.kill(os.getpid(), signal.SIGINT)
    time.sleep(60)


@dg.asset
def breaking_when_cancelled(context: dg.AssetExecutionContext) -> None:
    context.instance.report_run_canceling(context.run)
    raise ConnectionError("the driver was in the middle of something")


@dg.asset(partitions_def=dg.DailyPartitionsDefinition("01.01.2020", fmt="%d.%m.%Y"))
def dated(context: dg.AssetExecutionContext) -> None:
    Path(os.environ["WHERE"]).write_text(str(os.getpid()))


assets = [
    failing,
    failing_and_going_on,
    failing_twice,
    checked,
    where,
    misspelled,
    held,
    failing_beside_it,
    told_to_end,
    breaking_when_cancelled,
    dated,
]
defs = dg.Definitions(
    assets=[*assets, two_at_once],
    asset_checks=[never_right],
    executor=lane_executor,
    jobs=[
        *(dg.define_asset_job(f"run_{asset.key.path[0]}", selection=[asset]) for asset in assets),
        dg.define_asset_job("run_both", selection=["goes_on", "says_nothing"]),
        dg.define_asset_job("run_held_and_failing", selection=[held, failing_beside_it]),
    ],
)


@pytest.fixture
def instance(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("DAGSTER_HOME", str(tmp_path))
    (tmp_path / "dagster.yaml").write_text("telemetry: {enabled: false}")
    with dg.DagsterInstance.from_config(str(tmp_path)) as found:
        yield found


def run(instance: dg.DagsterInstance, asset: str, **tags: str) -> bool:
    names = {
        "backfill": "dagster/backfill",
        "partition": "dagster/partition",
        "first": "dagster/asset_partition_range_start",
        "last": "dagster/asset_partition_range_end",
    }
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


def test_a_table_that_goes_on_does_not_speak_for_the_one_beside_it(
    instance: dg.DagsterInstance,
) -> None:
    assert not run(instance, "both", backfill="b1", lane="backfill")
    (said,) = paused(instance)
    assert "both of them" in said


def test_a_policy_that_there_is_not_pauses(instance: dg.DagsterInstance) -> None:
    assert not run(instance, "misspelled", backfill="b1", lane="backfill")
    assert len(paused(instance)) == 1


def test_what_a_pause_has_stopped_is_no_failure_and_excuses_none(
    instance: dg.DagsterInstance,
) -> None:
    assert not run(instance, "held", backfill="b1", lane="backfill")
    assert paused(instance) == []
    assert not run(instance, "held_and_failing", backfill="b1", lane="backfill", held="yes")
    (said,) = paused(instance)
    assert "a failure of its own" in said


@pytest.mark.parametrize("asset", ["told_to_end", "breaking_when_cancelled"])
def test_a_run_that_somebody_cancels_is_no_failure(
    instance: dg.DagsterInstance, asset: str
) -> None:
    assert not run(instance, asset, backfill="b1", lane="backfill")
    assert paused(instance) == []


def test_a_breaker_that_cannot_act_does_not_hide_what_failed(
    instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away(*_: object):
        raise OSError("the storage is away")

    found = type(instance).get_run_by_id

    def away_for_the_breaker(self: dg.DagsterInstance, run_id: str):
        asks = sys._getframe(1).f_code.co_filename
        return (
            away() if asks.endswith("backfill_assets/instance/executor.py") else found(self, run_id)
        )

    monkeypatch.setattr(type(instance), "get_run_by_id", away_for_the_breaker)
    monkeypatch.setattr(Store, "change", away)
    assert not run(instance, "failing", backfill="b1", lane="backfill")
    (last,) = instance.get_runs()
    logged = instance.all_logs(last.run_id, of_type=dg.DagsterEventType.RUN_FAILURE)
    assert "Steps failed: ['failing']" in next(entry.message for entry in logged)


@pytest.mark.parametrize(
    "tags",
    [
        {"partition": "01.01.2020"},
        {"first": "01.01.2020", "last": "02.01.2020"},
        {"partition": "01.01.2020", "lane": "live", "lane_why": "says its launcher"},
    ],
)
def test_outside_the_queue_too_old_partitions_are_a_backfill(
    instance: dg.DagsterInstance, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tags: dict
) -> None:
    """Nothing in the key's name tells how old it is; the partitions themselves do."""
    monkeypatch.setenv("WHERE", str(tmp_path / "where"))
    assert run(instance, "dated", **tags)
    assert (tmp_path / "where").read_text() == str(os.getpid())


def test_steps_of_backfills_get_processes_of_their_own_where_the_settings_say_so(
    instance: dg.DagsterInstance, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WHERE", str(tmp_path / "where"))
    monkeypatch.setenv("BACKFILL_LANE_EXECUTOR", "multiprocess")
    settings.cache_clear()
    try:
        assert run(instance, "where", lane="backfill")
    finally:
        settings.cache_clear()
    assert (tmp_path / "where").read_text() != str(os.getpid())
