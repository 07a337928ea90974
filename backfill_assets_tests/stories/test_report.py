"""Reports of real backfills: what failed, died, was held and was never begun, written by the sensor and when asked."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from backfill_assets_tests.operations.test_report import rows_of
from backfill_assets_tests.stories.running import Story, day, days, going, told_in

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Story]:
    with told_in(tmp_path_factory.mktemp("reports"), BACKFILL_HOLD_SECONDS="3") as running:
        yield running


def written(story: Story, backfill: str) -> str:
    """Return the report that the sensor has written."""
    file = story.place.dagster_home / "storage" / "reports" / f"{backfill}.md"
    story.until(file.is_file, f"the report of {backfill}")
    return file.read_text()


def test_a_failed_day_its_pause_and_the_days_done_after_it_are_reported(story: Story) -> None:
    story.wants(failing=[day(2, 3)], held=days(3, 6, 3))
    bad = story.backfill("daily", days(1, 6, 3), "bad")
    story.paused(bad)
    story.wants(failing=[day(2, 3)])
    story.until(lambda: not going(story.counts(backfill=bad)), "it to stand still")
    assert story.do("report_backfill", backfill=bad) == "SUCCESS"
    interim = written(story, bad)
    assert "Still running, so this is an interim report" in interim
    assert "paused by the circuit breaker" in interim
    assert rows_of(interim, "mart.daily")[day(2, 3)]["outcome"] == "failed"
    (story.place.dagster_home / "storage" / "reports" / f"{bad}.md").unlink()

    assert story.do("resume_backfills", reason="mended", by="ana", backfill=bad) == "SUCCESS"
    assert story.end_of_backfill(bad) == "COMPLETED_FAILED"
    told = written(story, bad)
    lines = rows_of(told, "mart.daily")
    assert lines[day(2, 3)]["outcome"] == "failed"
    assert "the story wants 2026-03-02 to fail" in lines[day(2, 3)]["why"]
    assert {lines[d]["outcome"] for d in days(1, 6, 3) if d != day(2, 3)} == {"done"}
    assert "🔴 **1 run failed, 1 partition failed. Of 6 partitions 5 are done.**" in told

    story.wants()
    again = story.again(bad)
    assert story.end_of_backfill(again) == "COMPLETED_SUCCESS"
    told = written(story, again)
    # Dagster asks again for every partition whose materialization it has not seen at its last
    # look, which on a busy machine may be one that is done: what it asked for is what is told.
    asked = sorted(story.tags_of(run)["dagster/partition"] for run in story.runs(backfill=again))
    assert day(2, 3) in asked
    done = "The one partition is" if len(asked) == 1 else f"All {len(asked)} partitions are"
    assert f"🟢 **{done} done.**" in told
    assert list(rows_of(told, "mart.daily")) == [*asked, "total"]


def test_a_range_in_one_run_that_stops_in_the_middle_is_told_day_by_day(story: Story) -> None:
    story.wants(failing=[day(3, 4)])
    backfill = story.backfill("batched", days(1, 5, 4), "in one run")
    assert story.end_of_backfill(backfill) == "COMPLETED_FAILED"
    lines = rows_of(written(story, backfill), "mart.batched")
    outcomes = [lines[d]["outcome"] for d in days(1, 5, 4)]
    assert outcomes == ["done", "done", "failed", "not reached", "not reached"]


def test_a_process_that_is_killed_is_a_failure_with_a_reason(story: Story) -> None:
    story.wants(dying=[day(1, 5)])
    backfill = story.backfill("other", [day(1, 5)], "a death")
    assert story.end_of_backfill(backfill) == "COMPLETED_FAILED"
    line = rows_of(written(story, backfill), "mart.other")[day(1, 5)]
    assert line["outcome"] == "failed"
    assert line["why"] not in ("", "-")
