"""The queue's limits are those of dagster.yaml now; a file that cannot be right changes nothing."""

from __future__ import annotations

import logging
import os
from pathlib import Path

import dagster as dg
import pytest
import yaml

from backfill_assets.controls.switch import DOCUMENT, Scope, Switch
from backfill_assets.demo.place import ROOT
from backfill_assets.errors import DeclarationError
from backfill_assets.instance.limits import Limits, LimitsFile

LANE = {"key": "lane", "value": "backfill"}
THREE = Limits(10, ({**LANE, "limit": 3},))
_tick = iter(range(1, 1000))


def told(file: Path, **config: object) -> None:
    file.write_text(yaml.safe_dump({"run_coordinator": {"config": config}}))
    at = next(_tick) * 10**9
    os.utime(file, ns=(at, at))


def test_a_cap_that_is_changed_holds_from_then_on(tmp_path: Path) -> None:
    file = LimitsFile(THREE, tmp_path / "dagster.yaml")
    assert file.limits() == THREE
    told(
        tmp_path / "dagster.yaml",
        max_concurrent_runs=20,
        tag_concurrency_limits=[{**LANE, "limit": 7}],
    )
    assert (file.limits().runs, file.limits().backfill_cap) == (20, 7)


@pytest.mark.parametrize(
    ("config", "said"),
    [
        ({"tag_concurrency_limits": [{**LANE, "limit": 0}]}, "the cap of the backfill lane is 0"),
        ({"tag_concurrency_limits": [{**LANE, "limit": -1}]}, "the cap of the backfill lane is -1"),
        (
            {"tag_concurrency_limits": [{**LANE, "limit": "many"}]},
            "no list of key, value and limit",
        ),
        ({"tag_concurrency_limits": 5}, "no list of key, value and limit"),
        ({"max_concurrent_runs": 3}, "may take 3 of 3 runs at once, which leaves live runs none"),
    ],
)
def test_limits_that_cannot_be_right_change_nothing_and_are_told_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, config: dict, said: str
) -> None:
    file = LimitsFile(THREE, tmp_path / "dagster.yaml")
    told(tmp_path / "dagster.yaml", **config)
    with caplog.at_level(logging.ERROR):
        assert file.limits() == file.limits() == THREE
    assert caplog.text.count(said) == 1


def test_the_cap_that_holds_is_the_one_that_is_judged() -> None:
    """Of two limits on one tag Dagster takes the later, and where there is none the lane has three places."""
    two = ({**LANE, "limit": 3}, {**LANE, "limit": 50})
    with pytest.raises(DeclarationError, match="may take 50 of 10 runs"):
        Limits(10, two)
    assert Limits(10, tuple(reversed(two))).backfill_cap == 3
    with pytest.raises(DeclarationError, match="may take 3 of 3 runs"):
        Limits(3, ())
    assert Limits(10, ()).backfill_cap == 3
    assert Limits(-1, ()).backfill_cap == 3


def test_a_slip_in_the_file_is_told_by_its_place_and_shows_nothing_of_it(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "dagster.yaml").write_text(
        "storage:\n  postgres_url: postgresql://me:hunter2@host/db?x=[y: z\n  hunter2: {a: 'hunter2: [\n"
    )
    with caplog.at_level(logging.ERROR):
        assert LimitsFile(THREE, tmp_path / "dagster.yaml").limits() == THREE
    assert "line 2, column " in caplog.text or "line 3, column " in caplog.text
    assert "hunter2" not in caplog.text


def test_a_cap_of_nothing_is_refused_at_the_start() -> None:
    with pytest.raises(
        DeclarationError, match="to stop backfills for a while, run the job pause_backfills"
    ):
        Limits(10, ({**LANE, "limit": 0},))


@pytest.fixture
def instance(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("DAGSTER_HOME", str(tmp_path))
    (tmp_path / "dagster.yaml").write_text((ROOT / "dagster.yaml").read_text())
    with dg.DagsterInstance.from_config(str(tmp_path)) as found:
        yield found


def limits_of(instance: dg.DagsterInstance) -> list[dict]:
    queue = instance.get_concurrency_config().run_queue_config
    assert queue is not None
    return [dict(limit) for limit in queue.tag_concurrency_limits]


def effective(instance: dg.DagsterInstance) -> dict[tuple[str, str], int]:
    """The limits as Dagster takes them, of two on one tag the later."""
    return {(one["key"], one["value"]): one["limit"] for one in limits_of(instance)}


def test_what_is_paused_may_take_no_place(instance: dg.DagsterInstance) -> None:
    switch = Switch(instance)
    switch.pause(Scope(table="Mart.Sales"), "r", "ana")
    switch.pause(Scope(backfill="b1"), "r", "ana")
    assert {"key": "table/mart.sales", "value": "yes", "limit": 0} in limits_of(instance)
    assert {"key": "dagster/backfill", "value": "b1", "limit": 0} in limits_of(instance)
    assert {**LANE, "limit": 0} not in limits_of(instance)
    switch.pause(Scope(), "r", "ana")
    assert effective(instance)[("lane", "backfill")] == 0
    switch.resume(Scope(), "r", "ana")
    assert {**LANE, "limit": 0} not in limits_of(instance)


def test_a_switch_that_cannot_be_read_lets_no_backfill_start(instance: dg.DagsterInstance) -> None:
    instance.daemon_cursor_storage.set_cursor_values({f"backfill_assets/{DOCUMENT}": "no json"})
    assert effective(instance)[("lane", "backfill")] == 0
    assert effective(instance)[("lane", "live")] == 9


def test_a_file_that_caps_no_lane_caps_it_at_three(
    instance: dg.DagsterInstance, tmp_path: Path
) -> None:
    told(tmp_path / "dagster.yaml", max_concurrent_runs=10, tag_concurrency_limits=[])
    assert limits_of(instance) == [{**LANE, "limit": 3}]


def run_in(lane: str) -> dg.DagsterRun:
    return dg.DagsterRun(
        job_name="j", run_id=dg.DagsterRun(job_name="j").run_id, tags={"lane": lane}
    )


def test_neither_lane_keeps_the_other_out_however_many_of_its_runs_there_are(
    instance: dg.DagsterInstance,
) -> None:
    """Dagster's own counter, over the limits that its daemon is given."""
    from dagster._utils.tags import TagConcurrencyLimitsCounter

    queue = instance.get_concurrency_config().run_queue_config
    assert queue is not None
    live, backfill = run_in("live"), run_in("backfill")
    full_of_live = TagConcurrencyLimitsCounter(queue.tag_concurrency_limits, [run_in("live")] * 9)
    assert full_of_live.is_blocked(live)
    assert not full_of_live.is_blocked(backfill)
    assert queue.max_concurrent_runs > 9
    full_of_backfills = TagConcurrencyLimitsCounter(
        queue.tag_concurrency_limits, [run_in("backfill")] * 3
    )
    assert full_of_backfills.is_blocked(backfill)
    assert not full_of_backfills.is_blocked(live)
