"""A running instance for a story: launch as people do, look at the run store, at the warehouse, at what was said."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any
from unittest.mock import patch

import dagster as dg

from backfill_assets.controls.switch import Switch
from backfill_assets.demo.place import ROOT, Place, prepared
from backfill_assets.demo.servers import Running, servers
from backfill_assets.engines import open_engine

LOCATION = """load_from:
  - python_file: {relative_path: "%s", location_name: story}
"""
_RUNS = """query Runs($filter: RunsFilter!) {
  runsOrError(filter: $filter) { ... on Runs { results { runId status startTime tags { key value } } } }
}"""
_LAUNCH = """mutation Launch($params: ExecutionParams!) {
  launchRun(executionParams: $params) { __typename
    ... on LaunchRunSuccess { run { runId } } ... on PythonError { message }
    ... on RunConfigValidationInvalid { errors { message } }
  }
}"""
_RESUME = """mutation Again($id: String!) {
  reexecutePartitionBackfill(reexecutionParams: {parentRunId: $id, strategy: FROM_FAILURE}) {
    ... on LaunchBackfillSuccess { backfillId } ... on PythonError { message }
  }
}"""
ENDED = {"SUCCESS", "FAILURE", "CANCELED"}
GOING = {"STARTING", "STARTED"}


class Story:
    """A webserver and a daemon over the small tables of `location.py`."""

    def __init__(self, place: Place, running: Running, location: str | None = None) -> None:
        """`location`: which one `dagster job launch` means, where the workspace has several."""
        self.place, self.running, self._location = place, running, location

    @property
    def dagster(self):
        return self.running.dagster

    def wants(self, **told: object) -> None:
        """Say how the location's assets behave from now on; see `location.told`."""
        new = self.place.dagster_home / "story.json.new"
        new.write_text(json.dumps(told))
        new.rename(self.place.dagster_home / "story.json")

    def backfill(
        self, asset: str, days: list[str], title: str = "", tags: Mapping[str, str] | None = None
    ) -> str:
        """Launch a backfill as the UI does, and return its id."""
        return self.dagster.launch([["mart", asset]], days, title, dict(tags or {}))

    def again(self, backfill: str) -> str:
        """'Re-execute from failure', and return the new backfill's id."""
        return self.dagster.ask(_RESUME, id=backfill)["reexecutePartitionBackfill"]["backfillId"]

    def materialize(self, asset: str, tags: Mapping[str, str]) -> str:
        """Launch one run as the single-run path of the UI's dialog does, and return its id."""
        params = {
            "selector": {
                "pipelineName": "__ASSET_JOB",
                "repositoryName": "__repository__",
                "repositoryLocationName": "story",
                "assetSelection": [{"path": ["mart", asset]}],
                "assetCheckSelection": [],
            },
            "runConfigData": "{}",
            "mode": "default",
            "executionMetadata": {"tags": [{"key": k, "value": v} for k, v in tags.items()]},
        }
        found = self.dagster.ask(_LAUNCH, params=params)["launchRun"]
        assert "run" in found, found
        return found["run"]["runId"]

    def launch_job(self, job: str, tags: Mapping[str, str] | None = None, **config: object) -> str:
        """`dagster job launch`, and return the run's id; `config` is that of the job's only op."""
        run = f"{os.urandom(4).hex()}-0000-4000-8000-{os.urandom(6).hex()}"
        command = [
            str(Path(sys.executable).with_name("dagster")), "job", "launch", "-w", str(self.place.workspace),
            "-j", job, "--run-id", run,
        ]  # fmt: skip
        if self._location:
            command += ["--location", self._location]
        if tags:
            command += ["--tags", json.dumps(dict(tags))]
        if config:
            command += ["--config-json", json.dumps({"ops": {f"{job}_op": {"config": config}}})]
        found = subprocess.run(
            command, cwd=ROOT, env=self.place.environment, capture_output=True, text=True, check=False
        )  # fmt: skip
        assert found.returncode == 0, found.stderr
        return run

    def do(self, job: str, **config: object) -> str:
        """Run one of the control jobs to its end, and return its status."""
        return self.end_of(self.launch_job(job, **config))

    def runs(self, **tags: str) -> dict[str, str]:
        """Return the status of each run with these tags (`backfill` stands for Dagster's own tag)."""
        return {run["runId"]: run["status"] for run in self._found({"tags": _tags(tags)})}

    def tags_of(self, run: str) -> dict[str, str]:
        (found,) = self._found({"runIds": [run]})
        return {tag["key"]: tag["value"] for tag in found["tags"]}

    def counts(self, **tags: str) -> Counter[str]:
        return Counter(self.runs(**tags).values())

    def status(self, run: str) -> str:
        (found,) = self._found({"runIds": [run]})
        return found["status"]

    def started(self, run: str) -> float:
        """Return when the run started, in seconds since the epoch."""
        (found,) = self._found({"runIds": [run]})
        return found["startTime"]

    def end_of(self, run: str, patience: float = 180) -> str:
        self.until(lambda: self.status(run) in ENDED, f"run {run} to end", patience)
        return self.status(run)

    def end_of_backfill(self, backfill: str, patience: float = 240) -> str:
        ended = ("COMPLETED", "COMPLETED_SUCCESS", "COMPLETED_FAILED", "FAILED", "CANCELED")
        self.until(
            lambda: self.dagster.status(backfill)[0] in ended, f"{backfill} to end", patience
        )
        return self.dagster.status(backfill)[0]

    def until(self, true: Callable[[], bool], what: str, patience: float = 120) -> None:
        limit = time.monotonic() + patience
        while not true():
            self.running.must_be_alive()
            assert time.monotonic() < limit, f"waited {patience} s in vain for {what}"
            time.sleep(0.3)

    def paused(self, backfill: str) -> None:
        """Wait until a pause is on for the backfill."""

        def it_is() -> bool:
            home = str(self.place.dagster_home)
            with (
                patch.dict(os.environ, self.place.environment),
                dg.DagsterInstance.from_config(home) as instance,
            ):
                return any(pause.scope.backfill == backfill for pause in Switch(instance).pauses())

        self.until(it_is, f"{backfill} to be paused")

    def said(self, run: str) -> str:
        """Return what a failed run says."""
        return self.dagster.failure(run)

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        with open_engine(self.place.url).session(read_only=True) as session:
            return session.fetch(sql)

    def loads(self, where: str) -> list[str]:
        """Return the partitions that the audit has, in order of their commit."""
        sql = f"SELECT partition_key FROM backfill.load_audit WHERE {where} ORDER BY committed_at"
        return [row[0] for row in self.rows(sql)]

    def _found(self, wanted: Mapping[str, Any]) -> list[dict[str, Any]]:
        return self.dagster.ask(_RUNS, filter=wanted)["runsOrError"]["results"]


def _tags(tags: Mapping[str, str]) -> list[dict[str, str]]:
    names = {"backfill": "dagster/backfill", "partition": "dagster/partition"}
    return [{"key": names.get(key, key), "value": value} for key, value in tags.items()]


def loads_of(story: Story, backfill: str) -> list[str]:
    try:
        return story.loads(f"backfill_id = '{backfill}'")
    except Exception:  # the table is not made yet
        return []


def going(counts: Counter[str]) -> int:
    return sum(counts[status] for status in GOING)


def launched(story: Story, backfill: str, number: int = 1) -> None:
    """Wait until that many runs of the backfill are there."""
    story.until(
        lambda: len(story.runs(backfill=backfill)) >= number, f"{number} runs of {backfill}"
    )


def day(number: int, month: int = 1) -> str:
    return f"2026-{month:02}-{number:02}"


def days(first: int, last: int, month: int = 1) -> list[str]:
    return [day(number, month) for number in range(first, last + 1)]


@contextlib.contextmanager
def told_in(folder: Path, **settings: str) -> Iterator[Story]:
    """Start a story in `folder`; `settings` are environment variables of all its processes."""
    at = prepared(folder)
    workspace = at.dagster_home / "workspace.yaml"
    workspace.write_text(LOCATION % (Path(__file__).with_name("location.py")))
    daemon = Path(__file__).with_name("quick_daemon.py")
    place = Place(at.folder, workspace=workspace, settings=settings, daemon=daemon)
    with servers(place) as running:
        yield Story(place, running)
