"""What becomes of a backfill that fails, dies, spends too much or is released into: it stops, and ends whole."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import date

import pytest

from backfill_assets_tests.stories.running import Story, day, days, going, told_in

pytestmark = pytest.mark.slow
TODAY = date.today().isoformat()
RELOAD = """mutation { reloadRepositoryLocation(repositoryLocationName: "story") { __typename } }"""


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Story]:
    with told_in(tmp_path_factory.mktemp("controls"), BACKFILL_HOLD_SECONDS="3") as running:
        yield running


def test_a_failing_day_pauses_its_backfill_and_no_other_and_the_rest_is_done_after_a_resume(
    story: Story,
) -> None:
    story.wants(failing=[day(2, 3)], held=days(3, 8, 3))
    bad = story.backfill("daily", days(1, 8, 3), "bad")
    good = story.backfill("other", days(3, 5, 3), "good")
    story.paused(bad)
    story.wants(failing=[day(2, 3)])
    story.until(lambda: story.counts(backfill=good)["SUCCESS"] == 3, "the good one to end")
    story.until(lambda: not going(story.counts(backfill=bad)), "the bad one to stand still")
    failed = [run for run, status in story.runs(backfill=bad).items() if status == "FAILURE"]
    (really,) = (run for run in failed if story.tags_of(run).get("held") != "yes")
    assert story.tags_of(really)["dagster/partition"] == day(2, 3)
    assert story.counts(backfill=bad)["QUEUED"] >= 3
    story.wants()
    assert story.do("resume_backfills", reason="mended", by="ana", backfill=bad) == "SUCCESS"
    assert story.end_of_backfill(bad) == "COMPLETED_FAILED"
    again = story.again(bad)
    assert story.end_of_backfill(again) == "COMPLETED_SUCCESS"
    assert story.loads(f"backfill_id = '{again}'") == [day(2, 3)]
    assert sorted(story.loads(f"backfill_id IN ('{bad}', '{again}')")) == days(1, 8, 3)


def test_a_run_whose_process_is_killed_pauses_its_backfill_too(story: Story) -> None:
    story.wants(dying=[day(1, 4)], held=days(2, 8, 4))
    backfill = story.backfill("daily", days(1, 8, 4), "a death in it")
    story.until(lambda: story.counts(backfill=backfill)["FAILURE"] == 1, "the death to be seen")
    story.paused(backfill)
    story.wants()
    story.until(lambda: not going(story.counts(backfill=backfill)), "it to stand still", 60)
    time.sleep(5)
    assert story.counts(backfill=backfill)["QUEUED"] > 0
    story.wants()
    assert story.do("resume_backfills", reason="on", by="ana", backfill=backfill) == "SUCCESS"
    story.until(lambda: story.counts(backfill=backfill)["SUCCESS"] >= 7, "the other days")
    assert sorted(story.loads(f"backfill_id = '{backfill}'")) == days(2, 8, 4)


def test_a_budget_stops_a_backfill_and_a_raise_lets_it_end(story: Story) -> None:
    story.wants()
    backfill = story.backfill("batched", days(1, 5, 5), "capped", {"budget/rows": "6"})
    assert story.end_of_backfill(backfill) == "COMPLETED_FAILED"
    (run,) = story.runs(backfill=backfill)
    assert f"the budget of backfill {backfill} is used up: 6 of 6 rows are spent" in story.said(run)
    done = story.loads(f"backfill_id = '{backfill}'")
    assert done == days(1, 2, 5)
    wrong = story.launch_job("raise_budget", backfill=backfill, rows=-1, reason="r", by="ana")
    assert story.end_of(wrong) == "FAILURE"
    assert "should be more than 0" in story.said(wrong)
    raised = story.do("raise_budget", backfill=backfill, rows=100, reason="worth it", by="ana")
    assert raised == "SUCCESS"
    again = story.again(backfill)
    assert story.end_of_backfill(again) == "COMPLETED_SUCCESS"
    assert done + story.loads(f"backfill_id = '{again}'") == days(1, 5, 5)


def test_a_reload_and_another_daemon_in_the_middle_lose_nothing(story: Story) -> None:
    story.wants(seconds=0.5)
    backfill = story.backfill("daily", days(1, 12, 6), "through a release")
    story.until(lambda: story.counts(backfill=backfill)["SUCCESS"] >= 2, "two days")
    story.dagster.ask(RELOAD)
    story.running.restart_daemon()
    assert story.end_of_backfill(backfill, 360) == "COMPLETED_SUCCESS", story.counts(
        backfill=backfill
    )
    assert sorted(story.loads("partition_key LIKE '2026-06-%'")) == days(1, 12, 6)
    assert (
        story.rows(
            "SELECT day, count(*) FROM mart.daily WHERE day LIKE '2026-06-%' GROUP BY 1 HAVING count(*) <> 3"
        )
        == []
    )
