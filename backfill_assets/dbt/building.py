"""One dbt invocation for all partitions of a run: the gate before it, a pause during it, truth per partition after it."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import dagster as dg
from dagster._core.execution.plan.outputs import StepOutputHandle
from dagster_dbt import DbtCliInvocation, DbtCliResource

from backfill_assets.controls.lanes import lane_by_tags
from backfill_assets.dbt.environment import dbt_environment
from backfill_assets.dbt.results import Attempts, Told
from backfill_assets.errors import DeclarationError
from backfill_assets.io_managers import DeleteInsertIOManager
from backfill_assets.io_managers.controlled import ONE_DOOR, RunGate, say_once
from backfill_assets.io_managers.partitions import Target, target_of
from backfill_assets.io_managers.reporting import as_failure
from backfill_assets.io_managers.resuming import written_before
from backfill_assets.io_managers.run_context import run_of
from backfill_assets.io_managers.sessions import Sessions
from backfill_assets.slice import Slice
from backfill_assets.window import zone_named
from backfill_assets.writing import AuditTable, Load, Run

_PAUSE_SECONDS = 2.0


def build_slices(
    context: dg.AssetExecutionContext, dbt: DbtCliResource, manager: DeleteInsertIOManager
) -> Iterator[Any]:
    """Run `dbt build` once for all partitions of the run, and yield what Dagster is to know of each.

    The run's models have to be of `backfill_slices`. Every slice asks the gate first; a pause ends dbt, which leaves
    the slice under way as it was; what is committed stays and is told.
    """
    with as_failure():
        yield from _Build(context, dbt, manager).events()


@dataclass(frozen=True)
class _Model:
    """One model of the run: its output, its table's slices, and those that are left to write."""

    key: dg.AssetKey
    output: dg.OutputContext
    target: Target
    left: list[Slice]
    before: Mapping[str, Load]


class _Build:
    def __init__(
        self, context: dg.AssetExecutionContext, dbt: DbtCliResource, manager: DeleteInsertIOManager
    ) -> None:
        self._context, self._dbt, self._manager = context, dbt, manager
        self._audit = AuditTable(schema=manager.audit_schema)
        # dagster tells what a run is about by output only, and all outputs of a run have the same partitions
        keys = sorted(context.selected_asset_keys)
        self._run: Run = run_of(self._output(keys[0]), manager.controls.live_days)
        if self._run.lane == "backfill" and not manager.has_lane:
            say_once(context.log.info, ONE_DOOR)
        self._sessions = Sessions(
            manager.engine_of(self._run.lane), f"run {self._run.run_id[:8]}", context.log.info
        )
        self._models = [self._model(key) for key in keys]

    def events(self) -> Iterator[Any]:
        with self._sessions:
            gates = [self._admitted(model) for model in self._models]
            wanted = [slice_ for model in self._models for slice_ in model.left]
            # dbt opens the warehouse itself
            self._sessions.release()
            said: list[str] = []
            events: list[Any] = []
            paused = False
            if wanted:
                # the project may lie where nobody may write
                with tempfile.TemporaryDirectory(prefix="dbt-") as folder:
                    with reaching(self._manager):
                        dbt = self._dbt.cli(
                            self._command(wanted),
                            context=self._context,
                            raise_on_error=False,
                            target_path=Path(folder),
                        )
                    with _ended_by_a_pause(dbt, gates) as pause:
                        events = list(dbt.stream())
                    error = dbt.get_error()
                paused = pause.is_set()
                said = [str(error)] if error is not None else []
            yield from self._told(events, said, gates if paused else [])

    def _told(
        self, events: Sequence[Any], said: Sequence[str], held_by: Sequence[RunGate]
    ) -> Iterator[Any]:
        """Yield what is done of every model; raise for the first slice that is not."""
        attempts = Attempts(self._sessions.get(), self._audit, self._run.run_id)
        told = [
            Told(self._context, m.key, m.output, m.target, m.left, m.before, attempts)
            for m in self._models
        ]
        failed = [one for one in told if one.missing()]
        for one in told:
            if one not in failed:
                yield from one.finished(events)
        for one in failed:
            one.keep()
        if failed:
            for gate in held_by:
                gate.let_in(failed[0].missing()[0])  # raises in the words of the pause
            raise failed[0].failure(said)

    def _output(self, key: dg.AssetKey) -> dg.OutputContext:
        step = self._context.op_execution_context.get_step_execution_context()
        name = self._context.output_for_asset_key(key)
        return step.get_output_context(StepOutputHandle(step.step.key, name))

    def _model(self, key: dg.AssetKey) -> _Model:
        output = self._output(key)
        metadata = self._context.assets_def.metadata_by_key[key]
        if "partition_kind" not in metadata:
            raise DeclarationError(
                f"asset {key.to_user_string()} cannot be built by partition",
                "its model is not materialized as backfill_slices, so nobody knows what a partition of it is",
                "Materialize it so, or select it in a definition without partitions",
            )
        target = target_of(output, metadata, None, _kind_is_declared)
        before = written_before(output.step_context, target, self._audit, self._sessions)
        left = [slice_ for slice_ in target.slices if slice_.name not in before]
        return _Model(key, output, target, left, before)

    def _admitted(self, model: _Model) -> RunGate:
        """Ask the gate for each slice before dbt begins: budget, retention, reason, pause."""
        gate = RunGate(
            self._manager.controls,
            model.output,
            model.target,
            self._run,
            self._audit,
            self._sessions,
        )
        for slice_ in model.left:
            gate.let_in(slice_)
        return gate

    def _command(self, wanted: Sequence[Slice]) -> list[str]:
        days = sorted({_day(slice_) for slice_ in wanted})
        run = self._run
        told: dict[str, Any] = {
            "start": str(days[0]),
            "end": str(max(_last(slice_) for slice_ in wanted)),
            "run_id": run.run_id,
            "backfill_id": run.backfill_id,
            "lane": run.lane,
            "reason": run.reason,
            "ticket": run.ticket,
            "launched_by": run.launched_by,
            "allow": ",".join(sorted(run.allows)),
            "run_detail": run.detail,
            "backfill_audit_schema": self._manager.audit_schema,
            # the gate has asked for it already, and knows who need not give one
            "require_reason": "never",
        }
        if days != sorted({_day(s) for m in self._models for s in m.target.slices}):
            told["only_days"] = [str(day) for day in days]
        given = {name: value for name, value in told.items() if value not in (None, "")}
        return ["build", "--target", run.lane, "--vars", json.dumps(given)]


@contextlib.contextmanager
def reaching(manager: DeleteInsertIOManager) -> Iterator[None]:
    """Lead a dbt process that is started in the body to the IO manager's warehouse, by each lane's own door."""
    mine = dbt_environment(manager.url, manager.lane_url)
    before = {name: os.environ.get(name) for name in mine}
    os.environ.update(mine)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def lane_of(context: dg.AssetExecutionContext, manager: DeleteInsertIOManager) -> str:
    """Return the lane of a run without partitions, which is dbt's target."""
    return lane_by_tags(context.run.tags, manager.controls.live_days)


def _kind_is_declared(*_: object) -> Any:
    raise AssertionError("unreachable: a model's slice_kind has a default")


def _day(slice_: Slice) -> Any:
    return _local(slice_, slice_.window.start if slice_.window else None)


def _last(slice_: Slice) -> Any:
    """Return the day at which the slice ends, excluded."""
    return _local(slice_, slice_.window.end if slice_.window else None)


def _local(slice_: Slice, instant: Any) -> Any:
    column = slice_.table.slice_column
    if (
        instant is None
        or slice_.window is None
        or column is None
        or not slice_.window.is_whole_days(column.zone)
    ):
        raise DeclarationError(
            f"{slice_.label} cannot be built by dbt",
            "backfill_slices are whole days of the model's time_zone",
            "Partition the asset by days of that zone",
        )
    return instant.astimezone(zone_named(column.zone)).date()


@contextlib.contextmanager
def _ended_by_a_pause(dbt: DbtCliInvocation, gates: Sequence[RunGate]) -> Iterator[threading.Event]:
    """Ask while dbt runs whether a pause is on, and interrupt it then: it rolls back the slice under way."""
    over, paused = threading.Event(), threading.Event()

    def watch() -> None:
        while not over.wait(_PAUSE_SECONDS):
            if any(gate.holds() for gate in gates):
                paused.set()
                dbt.process.send_signal(signal.SIGINT)
                return

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield paused
    finally:
        over.set()
        watcher.join()
