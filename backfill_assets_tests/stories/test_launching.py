"""The real location behind the real webserver and daemon, launched in the ways that people launch things."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from backfill_assets.demo.place import ROOT, Place, prepared
from backfill_assets.demo.progress import watch
from backfill_assets.demo.servers import Running, servers
from backfill_assets.engines import open_engine
from backfill_assets.sales.source import prepare

pytestmark = pytest.mark.slow
RUN = "query Run($id: ID!) { runOrError(runId: $id) { ... on Run { status } } }"
RESUME = """mutation Again($id: String!) {
  reexecutePartitionBackfill(reexecutionParams: {parentRunId: $id, strategy: FROM_FAILURE}) {
    ... on LaunchBackfillSuccess { backfillId } ... on PythonError { message }
  }
}"""
STATUSES = """{ assetNodeOrError(assetKey: {path: ["analytics", "fct_sales"]}) { ... on AssetNode {
  assetPartitionStatuses { ... on TimePartitionStatuses { ranges { startKey endKey status } } }
} } }"""


class Dagster:
    """A running instance with the sample's source prepared."""

    def __init__(self, place: Place, running: Running) -> None:
        self.place, self.running = place, running

    def launch_job(self, tags: dict[str, str]) -> str:
        """`dagster job launch`, and return the run's id."""
        program = Path(sys.executable).with_name("dagster")
        command = [
            program,
            "job",
            "launch",
            "-w",
            "workspace.yaml",
            "-j",
            "rebuild_sales",
            "--tags",
            json.dumps(tags),
        ]
        before = set(self.runs())
        found = subprocess.run(
            command,
            cwd=ROOT,
            env=self.place.environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert found.returncode == 0, found.stderr
        (new,) = set(self.runs()) - before
        return new

    def resume(self, backfill: str) -> None:
        """End the pause that the circuit breaker made, as its alert says."""
        config = {"reason": "the day is mended", "by": "ana", "backfill": backfill}
        program = Path(sys.executable).with_name("dagster")
        told = json.dumps({"ops": {"resume_backfills_op": {"config": config}}})
        command = [program, "job", "launch", "-w", "workspace.yaml", "-j", "resume_backfills"]
        before = set(self.runs())
        subprocess.run(
            [*command, "--config-json", told], cwd=ROOT, env=self.place.environment, check=True
        )
        (new,) = set(self.runs()) - before
        assert self.end_of(new) == "SUCCESS"

    def runs(self) -> list[str]:
        found = self.running.dagster.ask("{ runsOrError { ... on Runs { results { runId } } } }")
        return [run["runId"] for run in found["runsOrError"]["results"]]

    def end_of(self, run: str) -> str:
        limit = time.monotonic() + 180
        while True:
            status = self.running.dagster.ask(RUN, id=run)["runOrError"]["status"]
            if status in ("SUCCESS", "FAILURE", "CANCELED"):
                return status
            assert time.monotonic() < limit, f"run {run} is still {status}"
            time.sleep(0.5)

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        with open_engine(self.place.url).session(read_only=True) as session:
            return session.fetch(sql)

    def execute(self, sql: str) -> None:
        with open_engine(self.place.url).session() as session:
            session.execute(sql)


@pytest.fixture(scope="module")
def dagster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Dagster]:
    place = prepared(tmp_path_factory.mktemp("story"))
    prepare(open_engine(place.url))
    with servers(place) as running:
        yield Dagster(place, running)


def test_a_job_launched_from_a_terminal_loads_its_partition_and_keeps_the_reason(
    dagster: Dagster,
) -> None:
    run = dagster.launch_job(
        {"dagster/partition": "2026-04-03", "reason": "INC-7 wrong prices", "launched_by": "ana"}
    )
    assert dagster.end_of(run) == "SUCCESS"
    found = dagster.rows(
        "SELECT table_name, partition_key, rows_before, rows_after > 0, reason, launched_by, lane FROM backfill.load_audit"
        f" WHERE run_id = '{run}' ORDER BY table_name"
    )
    assert found == [
        (table, "2026-04-03", 0, True, "INC-7 wrong prices", "ana", "backfill")
        for table in ("analytics.daily_product_sales", "analytics.fct_sales")
    ]


def test_a_range_launched_from_a_terminal_is_a_load_for_each_day(dagster: Dagster) -> None:
    edges = {
        "dagster/asset_partition_range_start": "2026-04-10",
        "dagster/asset_partition_range_end": "2026-04-12",
    }
    run = dagster.launch_job({**edges, "reason": "a range"})
    assert dagster.end_of(run) == "SUCCESS"
    found = dagster.rows(
        f"SELECT partition_key FROM backfill.load_audit WHERE run_id = '{run}' AND table_name = 'analytics.fct_sales' ORDER BY 1"
    )
    assert found == [("2026-04-10",), ("2026-04-11",), ("2026-04-12",)]


def test_a_partition_that_does_not_exist_fails_by_name_and_writes_nothing(dagster: Dagster) -> None:
    run = dagster.launch_job({"dagster/partition": "2036-01-05"})
    assert dagster.end_of(run) == "FAILURE"
    assert "2036-01-05" in dagster.running.dagster.failure(run)
    assert dagster.rows(f"SELECT count(*) FROM backfill.load_audit WHERE run_id = '{run}'") == [
        (0,)
    ]


def test_a_backfill_that_breaks_on_a_day_keeps_the_days_before_and_is_resumed_with_the_rest_alone(
    dagster: Dagster,
) -> None:
    duplicate = (
        "INSERT INTO staging.sales_raw SELECT * FROM staging.sales_raw WHERE sale_id = 7396830004"
    )
    sold_twice = "event_at >= TIMESTAMPTZ '2026-03-14 00:00:00+00' AND event_at < TIMESTAMPTZ '2026-03-15 00:00:00+00'"
    one = dagster.rows(
        f"SELECT min(sale_id) FROM staging.sales_raw WHERE {sold_twice} AND status = 'confirmed'"
    )[0][0]
    dagster.execute(duplicate.replace("7396830004", str(one)))
    days = [f"2026-03-{n:02}" for n in range(11, 19)]
    backfill = dagster.running.dagster.launch(
        [["analytics", "fct_sales"]], days, "March", {"reason": "a story"}
    )
    assert watch(dagster.running.dagster, backfill, Console(quiet=True)) == "COMPLETED_FAILED"
    loaded = f"SELECT partition_key, backfill_id FROM backfill.load_audit WHERE outcome = 'committed' AND partition_key BETWEEN '{days[0]}' AND '{days[-1]}' ORDER BY 1"
    assert dagster.rows(loaded) == [(day, backfill) for day in days[:3]]
    (failed,) = dagster.running.dagster.status(backfill)[1]
    said = dagster.running.dagster.failure(failed)
    assert f"analytics.fct_sales {days[3]} failed" in said
    assert f"{one} x2" in said
    dagster.execute(
        f"DELETE FROM staging.sales_raw WHERE sale_id = {one} AND rowid = (SELECT max(rowid) FROM staging.sales_raw WHERE sale_id = {one})"
    )
    dagster.resume(backfill)  # the breaker has paused it, and whatever executes it again
    again = dagster.running.dagster.ask(RESUME, id=backfill)["reexecutePartitionBackfill"][
        "backfillId"
    ]
    assert watch(dagster.running.dagster, again, Console(quiet=True)) == "COMPLETED_SUCCESS"
    assert dagster.rows(loaded) == [(day, backfill if day < days[3] else again) for day in days]
    assert dagster.rows("SELECT count(*) = count(DISTINCT sale_id) FROM analytics.fct_sales") == [
        (True,)
    ]


def test_neither_server_warns_about_anything_when_it_starts(dagster: Dagster) -> None:
    for name in ("webserver", "daemon"):
        log = dagster.place.log(name).read_text()
        assert "Serving" in log or "dagster.daemon" in log
        assert "Warning:" not in log
        assert "deprecat" not in log.lower()
