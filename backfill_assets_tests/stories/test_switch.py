"""The kill switch with the real webserver and daemon, on SQLite and on PostgreSQL."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from datetime import date
from pathlib import Path

import pytest

from backfill_assets_tests.stories.running import (
    Story,
    day,
    days,
    going,
    loads_of,
    told_in,
)
from backfill_assets_tests.warehouses import Warehouse

pytestmark = pytest.mark.slow
TODAY = date.today().isoformat()
AGAIN = """mutation Again($id: String!) {
  launchRunReexecution(reexecutionParams: {parentRunId: $id, strategy: ALL_STEPS}) {
    ... on LaunchRunSuccess { run { runId } } ... on PythonError { message }
  }
}"""


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Story]:
    with told_in(tmp_path_factory.mktemp("controls"), BACKFILL_HOLD_SECONDS="3") as running:
        yield running


def paused_and_resumed(story: Story, first: int, last: int) -> None:
    story.wants(held=days(first + 2, last, 2))
    backfill = story.backfill("daily", days(first, last, 2), "a pause in it")
    story.until(lambda: story.counts(backfill=backfill)["SUCCESS"] == 2, "two days")
    story.until(lambda: going(story.counts(backfill=backfill)) == 3, "three more to be under way")
    assert story.do("pause_backfills", reason="the source is wrong", by="ana") == "SUCCESS"
    done = len(loads_of(story, backfill))
    story.wants()
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


def test_a_batched_run_stops_before_its_next_day_and_a_resume_does_the_other_days_alone(
    story: Story,
) -> None:
    story.wants(seconds=1.1, held=days(4, 12))
    backfill = story.backfill("batched", days(1, 12), "in one run")
    story.until(lambda: loads_of(story, backfill) == days(1, 3), "the first days")
    assert story.do("pause_backfills", reason="wait", by="ana", backfill=backfill) == "SUCCESS"
    story.wants()
    time.sleep(6)
    assert loads_of(story, backfill) in (days(1, 3), days(1, 4))
    assert story.do("resume_backfills", reason="on", by="ana", backfill=backfill) == "SUCCESS"
    assert story.end_of_backfill(backfill) == "COMPLETED_SUCCESS"
    assert loads_of(story, backfill) == days(1, 12)


def test_a_pause_does_not_wait_behind_live_runs_that_fill_the_queue(story: Story) -> None:
    file = story.place.dagster_home / "dagster.yaml"
    as_it_was = file.read_text()
    full = as_it_was.replace("value: live, limit: 9", "value: live, limit: 1")
    assert full != as_it_was
    file.write_text(full.replace("max_concurrent_runs: 10", "max_concurrent_runs: 4"))
    story.wants(held=[TODAY])
    live = story.materialize("other", {"dagster/partition": TODAY})
    story.until(lambda: story.status(live) == "STARTED", "the live run to start")
    waits = story.materialize("daily", {"dagster/partition": TODAY})
    pause = story.launch_job("pause_backfills", reason="at once", by="ana")
    assert story.end_of(pause) == "SUCCESS"
    assert (story.status(live), story.status(waits)) == ("STARTED", "QUEUED")
    assert story.do("resume_backfills", reason="on", by="ana") == "SUCCESS"
    file.write_text(as_it_was)
    story.wants()
    assert story.end_of(live) == story.end_of(waits) == "SUCCESS"


def test_a_switch_over_what_there_is_not_is_refused(story: Story) -> None:
    no_table = story.launch_job("pause_backfills", reason="r", by="ana", table="mart.nothing")
    no_backfill = story.launch_job("resume_backfills", reason="r", by="ana", backfill="nothing")
    assert story.end_of(no_table) == story.end_of(no_backfill) == "FAILURE"
    assert "no asset of this location has that key or writes that table" in story.said(no_table)
    assert "no such pause is on" in story.said(no_backfill)


def test_a_run_executed_again_after_its_backfill_is_an_operation_of_its_own(story: Story) -> None:
    story.wants(batch=7)
    backfill = story.backfill("daily", [day(1, 7)], tags={"reason": "a week ago"})
    assert story.end_of_backfill(backfill) == "COMPLETED_SUCCESS"
    (run,) = story.runs(backfill=backfill)
    again = story.dagster.ask(AGAIN, id=run)["launchRunReexecution"]["run"]["runId"]
    assert story.end_of(again) == "SUCCESS"
    found = story.rows(
        f"SELECT backfill_id, detail LIKE '%{run}%', lane FROM backfill.load_audit WHERE run_id = '{again}'"
    )
    assert found == [(None, True, "backfill")]


def test_nothing_is_left_running_but_the_servers(story: Story) -> None:
    story.wants(held=[TODAY])
    run = story.materialize("other", {"dagster/partition": TODAY})
    story.until(
        lambda: story.status(run) == "STARTED" and bool(run_processes(story)), "its process"
    )
    story.wants()
    assert story.end_of(run) == "SUCCESS"
    story.until(lambda: run_processes(story) == [], "the processes of runs to end", 30)


def run_processes(story: Story) -> list[int]:
    """Return the processes of runs: children that Dagster's code servers have spawned, in the story's home."""
    home = f"DAGSTER_HOME={story.place.dagster_home}".encode()
    found: list[int] = []
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            spawned = b"multiprocessing.spawn" in (process / "cmdline").read_bytes()
            if spawned and home in (process / "environ").read_bytes().split(b"\0"):
                found.append(int(process.name))
    return found


def test_a_pause_and_a_resume_with_dagsters_storage_in_sqlite(story: Story) -> None:
    paused_and_resumed(story, 1, 8)


def test_a_pause_and_a_resume_with_dagsters_storage_in_postgres(
    tmp_path_factory: pytest.TempPathFactory, postgres: Warehouse
) -> None:
    with told_in(
        tmp_path_factory.mktemp("on_postgres"), BACKFILL_DAGSTER_PG_URL=postgres.url
    ) as running:
        paused_and_resumed(running, 1, 8)
