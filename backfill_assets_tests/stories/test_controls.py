"""Lanes, switch, breaker and budget with the real webserver and daemon: what people do, and what becomes of it."""

from __future__ import annotations

import subprocess
import time
from collections import Counter
from collections.abc import Iterator
from datetime import date

import pytest

from backfill_assets_tests.stories.running import GOING, Story, day, days, told_in
from backfill_assets_tests.warehouses import Warehouse

pytestmark = pytest.mark.slow
TODAY = date.today().isoformat()
RELOAD = """mutation { reloadRepositoryLocation(repositoryLocationName: "story") { __typename } }"""
CANCEL = (
    """mutation Cancel($id: String!) { cancelPartitionBackfill(backfillId: $id) { __typename } }"""
)
AGAIN = """mutation Again($id: String!) {
  launchRunReexecution(reexecutionParams: {parentRunId: $id, strategy: ALL_STEPS}) {
    ... on LaunchRunSuccess { run { runId } } ... on PythonError { message }
  }
}"""


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Story]:
    with told_in(tmp_path_factory.mktemp("controls"), BACKFILL_HOLD_SECONDS="3") as running:
        yield running


def launched(story: Story, backfill: str, number: int = 1) -> None:
    """Wait until that many runs of the backfill are there."""
    story.until(
        lambda: len(story.runs(backfill=backfill)) >= number, f"{number} runs of {backfill}"
    )


def going(counts: Counter[str]) -> int:
    return sum(counts[status] for status in GOING)


def loads_of(story: Story, backfill: str) -> list[str]:
    try:
        return story.loads(f"backfill_id = '{backfill}'")
    except Exception:  # the table is not made yet
        return []


def test_thirty_days_keep_to_the_cap_while_a_live_run_passes_and_a_new_cap_holds_at_once(
    story: Story,
) -> None:
    story.wants(seconds=0.5)
    backfill = story.backfill("daily", days(1, 30), "first load")
    launched(story, backfill, 10)
    live = story.materialize("other", {"dagster/partition": TODAY})
    most, live_began_behind = 0, 0
    while story.counts(backfill=backfill)["SUCCESS"] < 9 or story.status(live) != "SUCCESS":
        counts = story.counts(backfill=backfill)
        most = max(most, going(counts))
        if story.status(live) == "STARTED":
            live_began_behind = max(live_began_behind, counts["QUEUED"])
        time.sleep(0.3)
    assert most == 3
    assert live_began_behind > 0
    file = story.place.dagster_home / "dagster.yaml"
    file.write_text(
        file.read_text().replace("value: backfill, limit: 3", "value: backfill, limit: 5")
    )
    most = 0
    while story.counts(backfill=backfill)["SUCCESS"] < 30:
        most = max(most, going(story.counts(backfill=backfill)))
        time.sleep(0.3)
    file.write_text(
        file.read_text().replace("value: backfill, limit: 5", "value: backfill, limit: 3")
    )
    assert most == 5
    assert sorted(story.loads(f"backfill_id = '{backfill}'")) == days(1, 30)
    assert len(story.runs(backfill=backfill)) == 30
    assert story.end_of_backfill(backfill) == "COMPLETED_SUCCESS"


def test_every_way_to_launch_old_partitions_ends_in_the_backfill_lane(story: Story) -> None:
    story.wants()
    single = story.materialize("other", {"dagster/partition": day(1), "reason": "r"})
    terminal = story.launch_job(
        "daily_job", {"dagster/partition": day(1), "reason": "INC-7", "ticket": "T1"}
    )
    live = story.launch_job("daily_job", {"dagster/partition": TODAY})
    for run in (single, terminal, live):
        assert story.end_of(run) == "SUCCESS"
    lanes = {run: story.tags_of(run)["lane"] for run in (single, terminal, live)}
    assert list(lanes.values()) == ["backfill", "backfill", "live"]
    assert int(story.tags_of(single)["dagster/priority"]) < 0
    found = story.rows(
        f"SELECT lane, reason, ticket FROM backfill.load_audit WHERE run_id = '{terminal}'"
    )
    assert found == [("backfill", "INC-7", "T1")]


def test_a_day_that_was_loaded_is_refused_before_any_work_until_a_reason_is_given(
    story: Story,
) -> None:
    refused = story.materialize("daily", {"dagster/partition": day(2)})
    assert story.status(refused) == "FAILURE"
    assert "Refused: run" in story.said(refused)
    assert "no reason is given, and it was loaded before. Add the tag 'reason'" in story.said(
        refused
    )
    unknown = story.materialize("daily", {"dagster/partition": day(2), "lane": "fast"})
    assert "there is no such lane" in story.said(unknown)
    backfill = story.backfill("daily", [day(2)])
    assert story.end_of_backfill(backfill) == "COMPLETED_FAILED"
    given = story.backfill("daily", [day(2)], tags={"reason": "new prices", "ticket": "T-9"})
    assert story.end_of_backfill(given) == "COMPLETED_SUCCESS"
    (run,) = story.runs(backfill=given)
    found = story.rows(
        f"SELECT reason, ticket, backfill_id FROM backfill.load_audit WHERE run_id = '{run}'"
    )
    assert found == [("new prices", "T-9", given)]
    assert story.rows(f"SELECT count(*) FROM mart.daily WHERE day = '{day(2)}'") == [(3,)]


def paused_and_resumed(story: Story, first: int, last: int) -> None:
    story.wants(seconds=1)
    backfill = story.backfill("daily", days(first, last, 2), "a pause in it")
    story.until(lambda: story.counts(backfill=backfill)["SUCCESS"] >= 2, "two days")
    assert story.do("pause_backfills", reason="the source is wrong", by="ana") == "SUCCESS"
    done = len(loads_of(story, backfill))
    story.until(lambda: not going(story.counts(backfill=backfill)), "runs under way to end")
    rest = loads_of(story, backfill)
    assert len(rest) - done <= 3
    assert story.counts(backfill=backfill)["QUEUED"] > 0
    again = story.launch_job("pause_backfills", reason="me too", by="bob")
    assert story.end_of(again) == "FAILURE"
    assert "paused by ana since" in story.said(again)
    live = story.materialize("other", {"dagster/partition": TODAY})
    assert story.end_of(live) == "SUCCESS"
    assert loads_of(story, backfill) == rest
    resumed = story.launch_job("resume_backfills", reason="it is right again", by="ana")
    assert story.end_of(resumed) == "SUCCESS"
    story.until(lambda: going(story.counts(backfill=backfill)) > 0, "the queue to go on", 20)
    assert story.end_of_backfill(backfill) == "COMPLETED_SUCCESS"
    assert sorted(loads_of(story, backfill)) == days(first, last, 2)


def test_a_pause_lets_running_days_finish_and_a_resume_does_the_rest_once(story: Story) -> None:
    paused_and_resumed(story, 1, 12)


def test_a_batched_run_stops_before_its_next_day_and_a_resume_does_the_other_days_alone(
    story: Story,
) -> None:
    story.wants(seconds=1.2)
    backfill = story.backfill("batched", days(1, 12), "in one run")
    launched(story, backfill)
    story.until(lambda: bool(loads_of(story, backfill)), "the first day")
    assert story.do("pause_backfills", reason="wait", by="ana", backfill=backfill) == "SUCCESS"
    time.sleep(4)
    held = loads_of(story, backfill)
    time.sleep(5)
    assert loads_of(story, backfill) == held
    assert 0 < len(held) < 12
    assert story.do("resume_backfills", reason="on", by="ana", backfill=backfill) == "SUCCESS"
    assert story.end_of_backfill(backfill) == "COMPLETED_SUCCESS"
    assert loads_of(story, backfill) == days(1, 12)


def test_a_failing_day_pauses_its_backfill_and_no_other_and_the_rest_is_done_after_a_resume(
    story: Story,
) -> None:
    story.wants(failing=[day(2, 3)], seconds=0.5)
    bad = story.backfill("daily", days(1, 8, 3), "bad")
    good = story.backfill("other", days(1, 4, 3), "good")
    assert story.end_of_backfill(good) == "COMPLETED_SUCCESS"
    story.until(lambda: not going(story.counts(backfill=bad)), "the bad one to be paused")
    counts = story.counts(backfill=bad)
    assert counts["FAILURE"] == 1
    assert counts["QUEUED"] >= 3
    history = story.rows("SELECT 1")  # the warehouse is free
    assert history == [(1,)]
    story.wants()
    assert story.do("resume_backfills", reason="mended", by="ana", backfill=bad) == "SUCCESS"
    assert story.end_of_backfill(bad) == "COMPLETED_FAILED"
    again = story.again(bad)
    assert story.end_of_backfill(again) == "COMPLETED_SUCCESS"
    assert story.loads(f"backfill_id = '{again}'") == [day(2, 3)]
    assert sorted(story.loads(f"backfill_id IN ('{bad}', '{again}')")) == days(1, 8, 3)


def test_a_run_whose_process_is_killed_pauses_its_backfill_too(story: Story) -> None:
    story.wants(dying=[day(1, 4)], seconds=0.5)
    backfill = story.backfill("daily", days(1, 8, 4), "a death in it")
    story.until(lambda: story.counts(backfill=backfill)["FAILURE"] == 1, "the death to be seen")
    story.until(lambda: not going(story.counts(backfill=backfill)), "it to be paused", 60)
    time.sleep(5)
    assert story.counts(backfill=backfill)["QUEUED"] > 0
    story.wants()
    assert story.do("resume_backfills", reason="on", by="ana", backfill=backfill) == "SUCCESS"
    assert story.end_of_backfill(backfill) == "COMPLETED_FAILED"
    assert sorted(story.loads(f"backfill_id = '{backfill}'")) == days(2, 8, 4)


def test_a_budget_stops_a_backfill_and_a_raise_lets_it_end(story: Story) -> None:
    story.wants(seconds=1.1)
    backfill = story.backfill("batched", days(1, 5, 5), "capped", {"budget/rows": "6"})
    assert story.end_of_backfill(backfill) == "COMPLETED_FAILED"
    (run,) = story.runs(backfill=backfill)
    assert f"the budget of backfill {backfill} is used up: 6 of 6 rows are spent" in story.said(run)
    done = story.loads(f"backfill_id = '{backfill}'")
    assert 2 <= len(done) < 5
    wrong = story.launch_job("raise_budget", backfill=backfill, rows=-1, reason="r", by="ana")
    assert story.end_of(wrong) == "FAILURE"
    assert "should be more than 0" in story.said(wrong)
    again = story.again(backfill)
    story.until(lambda: bool(story.runs(backfill=again)), "its run")
    assert (
        story.do("raise_budget", backfill=again, rows=100, reason="worth it", by="ana") == "SUCCESS"
    )
    assert story.end_of_backfill(again) == "COMPLETED_SUCCESS"
    assert done + story.loads(f"backfill_id = '{again}'") == days(1, 5, 5)


def test_a_reload_and_another_daemon_in_the_middle_lose_nothing(story: Story) -> None:
    story.wants(seconds=0.5)
    backfill = story.backfill("daily", days(1, 12, 6), "through a release")
    story.until(lambda: story.counts(backfill=backfill)["SUCCESS"] >= 2, "two days")
    story.dagster.ask(RELOAD)
    story.running.restart_daemon()
    assert story.end_of_backfill(backfill, 360) in ("COMPLETED_SUCCESS", "COMPLETED_FAILED")
    if story.counts(backfill=backfill)["SUCCESS"] < 12:
        lost = story.counts(backfill=backfill)
        again = story.again(backfill)
        assert story.end_of_backfill(again) == "COMPLETED_SUCCESS", lost
    assert sorted(set(story.loads("partition_key LIKE '2026-06-%'"))) == days(1, 12, 6)
    assert (
        story.rows(
            "SELECT day, count(*) FROM mart.daily WHERE day LIKE '2026-06-%' GROUP BY 1 HAVING count(*) <> 3"
        )
        == []
    )


def test_a_run_executed_again_after_its_backfill_is_an_operation_of_its_own(story: Story) -> None:
    story.wants(batch=7)
    backfill = story.backfill("daily", [day(1, 7)], "a week ago")
    assert story.end_of_backfill(backfill) == "COMPLETED_SUCCESS"
    (run,) = story.runs(backfill=backfill)
    again = story.dagster.ask(AGAIN, id=run)["launchRunReexecution"]["run"]["runId"]
    assert story.end_of(again) == "SUCCESS"
    found = story.rows(
        f"SELECT backfill_id, detail LIKE '%{run}%', lane FROM backfill.load_audit WHERE run_id = '{again}'"
    )
    assert found == [(None, True, "backfill")]


def test_a_live_run_passes_two_hundred_that_wait_and_what_waits_can_be_cancelled(
    story: Story,
) -> None:
    story.wants()
    assert story.do("pause_backfills", reason="a queue", by="ana") == "SUCCESS"
    many = [date.fromordinal(date(2026, 1, 1).toordinal() + n).isoformat() for n in range(200)]
    backfill = story.backfill("other", many, "everything")
    story.until(lambda: story.counts(backfill=backfill)["QUEUED"] >= 190, "the queue", 240)
    live = story.materialize("daily", {"dagster/partition": TODAY})
    assert story.end_of(live, 60) == "SUCCESS"
    assert story.counts(backfill=backfill)["SUCCESS"] == 0
    story.dagster.ask(CANCEL, id=backfill)
    assert story.end_of_backfill(backfill) == "CANCELED"
    assert story.do("resume_backfills", reason="over", by="ana") == "SUCCESS"
    one = story.materialize("other", {"dagster/partition": day(20, 2), "reason": "after a cancel"})
    assert story.end_of(one) == "SUCCESS"


def test_a_switch_over_what_there_is_not_is_refused(story: Story) -> None:
    no_table = story.launch_job("pause_backfills", reason="r", by="ana", table="mart.nothing")
    no_backfill = story.launch_job("resume_backfills", reason="r", by="ana", backfill="nothing")
    assert story.end_of(no_table) == story.end_of(no_backfill) == "FAILURE"
    assert "no asset of this location has that key or writes that table" in story.said(no_table)
    assert "no such pause is on" in story.said(no_backfill)


def test_nothing_is_left_running_but_the_servers(story: Story) -> None:
    found = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True).stdout
    assert not [
        line
        for line in found.splitlines()
        if "execute_run" in line and str(story.place.folder) in line
    ]


def test_a_pause_and_a_resume_with_dagsters_storage_in_postgres(
    tmp_path_factory: pytest.TempPathFactory, postgres: Warehouse
) -> None:
    with told_in(
        tmp_path_factory.mktemp("on_postgres"), BACKFILL_DAGSTER_PG_URL=postgres.url
    ) as running:
        paused_and_resumed(running, 1, 8)
