"""The few questions that the demos ask the webserver, in the words of the UI's own GraphQL."""

from __future__ import annotations

import json
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from backfill_assets.errors import BackfillError

_READY = """{
  instance { daemonHealth { allDaemonStatuses { daemonType healthy } } }
  workspaceOrError { ... on Workspace { locationEntries {
    name loadStatus locationOrLoadError { __typename ... on PythonError { message } }
  } } }
}"""
_LAUNCH = """mutation Launch($params: LaunchBackfillParams!) {
  launchPartitionBackfill(backfillParams: $params) {
    __typename
    ... on LaunchBackfillSuccess { backfillId }
    ... on PythonError { message }
  }
}"""
_ENDED = ("SUCCESS", "FAILURE", "CANCELED")
_RUN = """mutation Run($params: ExecutionParams!) {
  launchRun(executionParams: $params) {
    __typename
    ... on LaunchRunSuccess { run { runId } }
    ... on PythonError { message }
    ... on RunConfigValidationInvalid { errors { message } }
  }
}"""
_RUN_STATUS = """query Run($id: ID!) { runOrError(runId: $id) { ... on Run { status } } }"""
_LOCATIONS = """{ repositoriesOrError { ... on RepositoryConnection { nodes { name location { name } } } } }"""
_STATUS = """query Status($id: String!, $runs: RunsFilter!) {
  partitionBackfillOrError(backfillId: $id) {
    __typename
    ... on PartitionBackfill { status }
    ... on PythonError { message }
  }
  runsOrError(filter: $runs) { ... on Runs { results { runId status } } }
}"""
_FAILURE = """query Failure($id: ID!) {
  logsForRun(runId: $id) { ... on EventConnection { events {
    ... on ExecutionStepFailureEvent { error { message } }
    ... on RunFailureEvent { message }
  } } }
}"""


class Dagster:
    """A webserver by its URL."""

    def __init__(self, url: str) -> None:
        self.url = url

    def is_ready(self) -> bool:
        """Tell whether the code location is loaded and the daemon's queue and backfills are alive.

        Raises `BackfillError` once Dagster has given up loading the location.
        """
        try:
            # whoever has taken the port may never answer
            found = self.ask(_READY, patience=5)
        except BackfillError:
            return False
        locations = found["workspaceOrError"].get("locationEntries", [])
        loaded = [entry for entry in locations if entry["loadStatus"] == "LOADED"]
        for entry in loaded:
            _refuse_unloadable(entry["name"], entry["locationOrLoadError"])
        daemons = found["instance"]["daemonHealth"]["allDaemonStatuses"]
        alive = {daemon["daemonType"] for daemon in daemons if daemon["healthy"]}
        return bool(loaded) and {"QUEUED_RUN_COORDINATOR", "BACKFILL"} <= alive

    def launch(
        self,
        assets: Sequence[Sequence[str]],
        partitions: list[str],
        title: str,
        tags: dict[str, str],
    ) -> str:
        """Launch a backfill as the UI's dialog does, and return its id."""
        params = {
            "assetSelection": [{"path": list(path)} for path in assets],
            "partitionNames": partitions,
            "title": title,
            "tags": [{"key": key, "value": value} for key, value in tags.items()],
        }
        found = self.ask(_LAUNCH, params=params)["launchPartitionBackfill"]
        if "backfillId" not in found:
            raise BackfillError(
                "the backfill could not be launched",
                found.get("message", found["__typename"]),
                "Read the webserver's log",
            )
        return str(found["backfillId"])

    def run_job(
        self,
        job: str,
        config: Mapping[str, Any],
        must_be_alive: Callable[[], None],
        patience: float = 180,
    ) -> None:
        """Run a job of one op with `config` to its end; raise what it says when it fails."""
        selector = {"pipelineName": job, **self._location()}
        params = {
            "selector": selector,
            "runConfigData": json.dumps({"ops": {f"{job}_op": {"config": config}}}),
            "mode": "default",
        }
        found = self.ask(_RUN, params=params)["launchRun"]
        if "run" not in found:
            raise BackfillError(
                f"{job} could not be launched", str(found), "Read the webserver's log"
            )
        run, until = found["run"]["runId"], time.monotonic() + patience
        while (status := self.ask(_RUN_STATUS, id=run)["runOrError"]["status"]) not in _ENDED:
            must_be_alive()
            if time.monotonic() > until:
                raise BackfillError(
                    f"{job} did not end in {patience:.0f} s", f"it is {status}", "Read the logs"
                )
            time.sleep(0.5)
        if status != "SUCCESS":
            raise BackfillError(f"{job} did not work", self.failure(run), "Read the run's page")

    def _location(self) -> dict[str, str]:
        found = self.ask(_LOCATIONS)["repositoriesOrError"]["nodes"][0]
        return {
            "repositoryName": found["name"],
            "repositoryLocationName": found["location"]["name"],
        }

    def status(self, backfill: str) -> tuple[str, dict[str, str]]:
        """Return the backfill's status, and the status of each of its runs."""
        runs = {"tags": [{"key": "dagster/backfill", "value": backfill}]}
        found = self.ask(_STATUS, id=backfill, runs=runs)
        results = found["runsOrError"]["results"]
        return str(found["partitionBackfillOrError"].get("status", "UNKNOWN")), {
            r["runId"]: r["status"] for r in results
        }

    def failure(self, run: str) -> str:
        """Return what a failed run says, or an empty text."""
        events = self.ask(_FAILURE, id=run)["logsForRun"].get("events", [])
        said = [
            (event.get("error") or {}).get("message") or event.get("message") for event in events
        ]
        return next((str(text).strip() for text in said if text), "")

    def ask(self, query: str, *, patience: float = 60, **variables: Any) -> dict[str, Any]:
        """Ask one question, with `patience` in seconds; errors of the schema are raised."""
        request = urllib.request.Request(
            f"{self.url}/graphql",
            data=json.dumps({"query": query, "variables": variables}).encode(),
            headers={"Content-Type": "application/json"},
        )
        try:
            with urllib.request.urlopen(request, timeout=patience) as answer:
                found = json.load(answer)
        except urllib.error.HTTPError as error:
            said = error.read().decode(errors="replace")[:500]
            raise BackfillError("the webserver refused a question", said, "Read its log") from error
        except (OSError, ValueError) as error:
            raise BackfillError(
                "the webserver gave no answer", str(error), "Read its log"
            ) from error
        if found.get("errors"):
            raise BackfillError(
                "the webserver did not understand a question",
                str(found["errors"][0]["message"]),
                "Read its log",
            )
        return found["data"]


def _refuse_unloadable(name: str, location: dict[str, Any] | None) -> None:
    if location is not None and location["__typename"] == "PythonError":
        raise BackfillError(
            f"Dagster could not load {name}", location["message"], "Correct that and run this again"
        )
