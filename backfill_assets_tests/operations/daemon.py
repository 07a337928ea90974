"""Dagster's own backfill daemon without its pauses: each tick submits runs, which are executed here, one by one."""

from __future__ import annotations

import contextlib
import logging
import tempfile
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from dagster._core.definitions.reconstruct import ReconstructableRepository
from dagster._core.execution.api import execute_run
from dagster._core.execution.backfill import BulkActionStatus, PartitionBackfill
from dagster._core.storage.dagster_run import RunsFilter
from dagster._core.test_utils import (
    create_test_daemon_workspace_context,
    freeze_time,
    instance_for_test,
)
from dagster._core.workspace.load_target import PythonFileTarget
from dagster._daemon.backfill import execute_backfill_iteration
from dagster._daemon.sensor import execute_sensor_iteration
from dagster._utils.hosted_user_process import recon_job_from_origin

from backfill_assets.operations.launching import is_going, request_backfill

_INSTANCE = {
    "python_logs": {"python_log_level": "ERROR"},
    "run_launcher": {
        "module": "dagster._core.launcher.sync_in_memory_run_launcher",
        "class": "SyncInMemoryRunLauncher",
    },
    "run_coordinator": {
        "module": "dagster._core.run_coordinator",
        "class": "DefaultRunCoordinator",
    },
}


class Daemon:
    """An instance with the location of a file, and its backfills."""

    def __init__(self, instance: dg.DagsterInstance, workspace: Any, file: Path) -> None:
        self.instance, self.workspace, self.file = instance, workspace, file
        self._now = datetime.now(timezone.utc)

    def backfill(self, wanted: Mapping[str, list[str]], **tags: str) -> str:
        """Request a backfill of assets of `mart` and return its id."""
        keys = {dg.AssetKey(["mart", name]): days for name, days in wanted.items()}
        graph = self.workspace.create_request_context().asset_graph
        return request_backfill(self.instance, graph, keys, tags, title="a plan")

    def tick(self) -> None:
        """Let the daemon look once; runs that it submits are executed before it goes on."""
        for error in execute_backfill_iteration(self.workspace, logging.getLogger("daemon")):
            assert error is None, error

    def end(self, backfill: str, ticks: int = 10) -> str:
        """Let the daemon look until the backfill has ended, and return its status."""
        for _ in range(ticks):
            if not is_going(self.found(backfill)):
                return self.found(backfill).status.value
            self.tick()
        raise AssertionError(f"{backfill} is {self.found(backfill).status} after {ticks} ticks")

    def cancel(self, backfill: str) -> None:
        self.instance.update_backfill(self.found(backfill).with_status(BulkActionStatus.CANCELING))

    def found(self, backfill: str) -> PartitionBackfill:
        backfill_ = self.instance.get_backfill(backfill)
        assert backfill_ is not None
        return backfill_

    def runs(self, backfill: str) -> list[dg.DagsterRun]:
        """Return the runs of a backfill, the first one first."""
        found = self.instance.get_runs(RunsFilter(tags={"dagster/backfill": backfill}))
        return list(reversed(list(found)))

    def sensor(self, name: str) -> Any:
        (entry,) = self.workspace.create_request_context().get_code_location_entries().values()
        return entry.code_location.get_repository("__repository__").get_sensor(name)

    def sense(self, name: str) -> list[str]:
        """Let the sensor daemon look an hour later; return the partitions of all runs of the sensor so far."""
        self._now += timedelta(hours=1)
        with freeze_time(self._now):
            list(execute_sensor_iteration(self.workspace, logging.getLogger("sensors"), None, None))
        return [run.tags["dagster/partition"] for run in self._of_sensor(name)]

    def execute(self, name: str) -> None:
        """Execute the runs of a sensor that are not executed yet."""
        for run in reversed(self._of_sensor(name)):
            if not run.is_finished:
                execute_run(recon_job_from_origin(run.job_code_origin), run, self.instance)  # type: ignore[arg-type]

    def _of_sensor(self, name: str) -> list[dg.DagsterRun]:
        return list(self.instance.get_runs(RunsFilter(tags={"dagster/sensor_name": name})))

    def job(
        self, name: str, location: str = "defs", ok: bool = True, **config: Any
    ) -> dict[str, Any]:
        """Run a job of one op to its end; return what it shows as JSON, or what it says when it fails."""
        result = dg.execute_job(
            ReconstructableRepository.for_file(str(self.file), location).get_reconstructable_job(
                name
            ),
            run_config={"ops": {f"{name}_op": {"config": config}}},
            instance=self.instance,
            raise_on_error=False,
        )
        failed = result.filter_events(lambda event: event.is_step_failure)
        said = [event.step_failure_data.error.message for event in failed]  # type: ignore[union-attr]
        assert result.success is ok, said
        if not ok:
            return {"said": said[0]}
        (made,) = [e for e in result.all_events if e.event_type_value == "STEP_OUTPUT"]
        metadata = made.event_specific_data.metadata  # type: ignore[union-attr]
        return metadata["json"].value if "json" in metadata else {}


@contextlib.contextmanager
def daemon_for(file: Path, url: str | None = None) -> Iterator[Daemon]:
    """Start a code server for the definitions `defs` of a file, on an instance of its own.

    `url` is the warehouse for what is evaluated there; runs are executed here, by the environment of each test.
    """
    target = PythonFileTarget(str(file), "defs", working_directory=None, location_name="here")
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setenv("LATE_TEST_URL", url or f"duckdb:///{folder}/nobodys.duckdb")
        with instance_for_test(overrides=_INSTANCE, temp_dir=folder) as instance:
            with create_test_daemon_workspace_context(target, instance) as workspace:
                yield Daemon(instance, workspace, file)
