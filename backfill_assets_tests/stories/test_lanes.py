"""Two lanes with the real webserver and daemon: what is capped, what passes, what is refused."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import date

import pytest

from backfill_assets_tests.stories.running import Story, day, days, going, launched, told_in

pytestmark = pytest.mark.slow
TODAY = date.today().isoformat()
CANCEL = (
    """mutation Cancel($id: String!) { cancelPartitionBackfill(backfillId: $id) { __typename } }"""
)


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Story]:
    with told_in(tmp_path_factory.mktemp("controls"), BACKFILL_HOLD_SECONDS="3") as running:
        yield running


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
    first = story.materialize("daily", {"dagster/partition": day(2, 5)})
    assert story.end_of(first) == "SUCCESS"
    refused = story.materialize("daily", {"dagster/partition": day(2, 5)})
    assert story.status(refused) == "FAILURE"
    assert "Refused: run" in story.said(refused)
    assert "no reason is given, and it was loaded before. Add the tag 'reason'" in story.said(
        refused
    )
    unknown = story.materialize("daily", {"dagster/partition": day(2, 5), "lane": "fast"})
    assert "there is no such lane" in story.said(unknown)
    given = story.backfill("daily", [day(2, 5)], tags={"reason": "new prices", "ticket": "T-9"})
    story.until(lambda: story.counts(backfill=given)["SUCCESS"] == 1, "the day")
    (run,) = story.runs(backfill=given)
    found = story.rows(
        f"SELECT reason, ticket, backfill_id FROM backfill.load_audit WHERE run_id = '{run}'"
    )
    assert found == [("new prices", "T-9", given)]
    assert story.rows(f"SELECT count(*) FROM mart.daily WHERE day = '{day(2, 5)}'") == [(3,)]


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
