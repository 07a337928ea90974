"""A backfill that is cancelled in the middle, with the real webserver and daemon, ends with each day exactly once."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from backfill_assets_tests.stories.running import Story, days, loads_of, told_in

pytestmark = pytest.mark.slow
CANCEL = (
    """mutation Cancel($id: String!) { cancelPartitionBackfill(backfillId: $id) { __typename } }"""
)
BACKFILLS = """{ partitionBackfillsOrError(limit: 50) {
  ... on PartitionBackfills { results { id tags { key value } } }
} }"""


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Story]:
    with told_in(tmp_path_factory.mktemp("resumed")) as running:
        yield running


def resumes_of(story: Story, backfill: str) -> list[str]:
    found = story.dagster.ask(BACKFILLS)["partitionBackfillsOrError"]["results"]
    wanted = {"key": "resumes", "value": backfill}
    return [one["id"] for one in found if wanted in one["tags"]]


def days_of(story: Story, backfill: str, status: str | None = None) -> set[str]:
    runs = story.runs(backfill=backfill)
    return {
        story.tags_of(run)["dagster/partition"]
        for run, ended in runs.items()
        if status in (None, ended)
    }


def test_a_batched_backfill_cancelled_in_the_middle_is_resumed_by_the_job_and_another_by_the_ui(
    story: Story,
) -> None:
    story.wants(seconds=1.1, held=days(6, 14) + days(3, 6, 2))
    batched = story.backfill("batched", days(1, 14), "new prices", {"ticket": "INC-7"})
    daily = story.backfill("daily", days(1, 6, 2), "new prices")
    story.until(
        lambda: len(loads_of(story, batched)) == 5 and story.counts(backfill=daily)["SUCCESS"] == 2,
        "the first days of both",
    )
    for backfill in (batched, daily):
        story.dagster.ask(CANCEL, id=backfill)
    assert story.end_of_backfill(batched) == story.end_of_backfill(daily) == "CANCELED"
    again = story.again(daily)
    assert story.do("resume_backfill", backfill=batched, by="ana") == "SUCCESS"
    done, succeeded = loads_of(story, batched), days_of(story, daily, "SUCCESS")
    assert done == days(1, 5)
    assert succeeded == set(days(1, 2, 2))
    story.wants()
    (new,) = resumes_of(story, batched)
    assert story.end_of_backfill(new) == story.end_of_backfill(again) == "COMPLETED_SUCCESS"
    assert done + loads_of(story, new) == days(1, 14)
    assert not succeeded & days_of(story, again)
    for table, month, last in (("batched", 1, 14), ("daily", 2, 6)):
        found = story.rows(
            f"SELECT day, count(*) FROM mart.{table} WHERE day LIKE '2026-0{month}-%' GROUP BY 1 ORDER BY 1"
        )
        assert found == [(day, 3) for day in days(1, last, month)]
    who = story.rows(
        "SELECT DISTINCT reason, ticket, launched_by FROM backfill.load_audit"
        f" WHERE backfill_id = '{new}'"
    )
    assert who == [("new prices", "INC-7", "ana")]
