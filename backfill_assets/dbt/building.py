"""Partitions of a run by dbt: the gate before every one of them, one invocation for as many as are let in, then the truth."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import dagster as dg
from dagster._core.execution.plan.outputs import StepOutputHandle
from dagster_dbt import DbtCliResource

from backfill_assets.dbt.invoking import Ended, command_for, invoked
from backfill_assets.dbt.results import Attempts, Told
from backfill_assets.errors import BackfillError, DeclarationError, Refused
from backfill_assets.io_managers import DeleteInsertIOManager
from backfill_assets.io_managers.controlled import ONE_DOOR, RunGate, say_once
from backfill_assets.io_managers.partitions import Target, target_of
from backfill_assets.io_managers.reporting import as_failure
from backfill_assets.io_managers.resuming import written_before
from backfill_assets.io_managers.run_context import run_of
from backfill_assets.io_managers.sessions import Sessions
from backfill_assets.slice import Slice
from backfill_assets.writing import AuditTable, Load, Run


def build_slices(
    context: dg.AssetExecutionContext, dbt: DbtCliResource, manager: DeleteInsertIOManager
) -> Iterator[Any]:
    """Run `dbt build` for all partitions of the run, and yield what Dagster is to know of each.

    The run's models have to be of `backfill_slices`. Every slice asks the gate first, and again while dbt runs: budget,
    reason and retention inside the warehouse, a pause from outside. Where one of them says no, dbt ends, what is
    committed stays and is told, and the run ends in the words of the gate, or goes on if that lets it by then.
    """
    with as_failure():
        yield from _Build(context, dbt, manager).events()


@dataclass(frozen=True)
class _Model:
    """One model of the run: its output, its table's slices, those that are to be written, and their gate."""

    key: dg.AssetKey
    output: dg.OutputContext
    target: Target
    left: list[Slice]
    before: Mapping[str, Load]
    gate: RunGate

    @property
    def table(self) -> str:
        return self.target.table.qualified


# the slices of each model that are not written yet
_Missing = dict[dg.AssetKey, list[Slice]]


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
        self._events: list[Any] = []

    def events(self) -> Iterator[Any]:
        with self._sessions:
            try:
                told, failure = self._built()
            except BaseException:  # a run that is terminated keeps its days too
                with contextlib.suppress(Exception):
                    for one in self._told():
                        one.keep()
                raise
            for one in told:
                if not one.missing():
                    yield from one.finished(self._events)
            for one in told:
                if one.missing():
                    one.keep()
            if failure is not None:
                raise failure

    def _built(self) -> tuple[list[Told], BackfillError | None]:
        """Write what may be written; return what became of each model, and the error of a run that is not done."""
        missing: _Missing = {model.key: model.left for model in self._models if model.left}
        told, stuck = None, False
        broken: Ended | None = None
        while missing:
            try:
                admitted = self._admitted(missing)
            except Refused as error:
                told = told or self._told()
                return told, _first(told).stopped_by(error)
            ended = self._invoked(admitted)
            self._events += ended.events
            told = self._told()
            left: _Missing = {one.key: slices for one in told if (slices := one.missing())}
            # a control ended it: the gate is asked for its words, and may let the rest in by now
            goes_on = ended.paused or (ended.used_up and not stuck)
            if not goes_on and _has_any(left, admitted):
                return told, _first(told).failure(ended.said)
            if ended.failed and not (left and goes_on):
                broken = broken or ended
            stuck, missing = ended.used_up and left == missing, left
        told = told or self._told()
        return told, broken and told[0].closing_failed(broken.said, broken.paused)

    def _told(self) -> list[Told]:
        attempts = Attempts(self._sessions.get(), self._audit, self._run.run_id)
        return [
            Told(self._context, m.key, m.output, m.target, m.left, m.before, attempts)
            for m in self._models
        ]

    def _admitted(self, missing: _Missing) -> _Missing:
        """Ask the gate for each slice in order; return those before the first that it refuses, or raise where that is the very first."""
        admitted: _Missing = {key: [] for key in missing}
        gates = {model.key: model.gate for model in self._models}
        in_order = sorted(
            ((slice_, key) for key, slices in missing.items() for slice_ in slices),
            key=lambda pair: pair[0].window.start.timestamp() if pair[0].window else 0.0,
        )
        for slice_, key in in_order:
            try:
                gates[key].let_in(slice_)
            except Refused:
                if not any(admitted.values()):
                    raise
                break  # it is asked for again, and refuses the run, once those before it are written
            admitted[key].append(slice_)
        return admitted

    def _invoked(self, admitted: _Missing) -> Ended:
        # dbt opens the warehouse itself
        self._sessions.release()
        command = command_for(
            self._run,
            self._manager,
            {model.table: admitted.get(model.key, []) for model in self._models},
            {model.table: model.gate.budget_asked_elsewhere() for model in self._models},
        )
        return invoked(self._context, self._dbt, self._manager, command, self._is_held)

    def _is_held(self) -> bool:
        return any(model.gate.holds() for model in self._models)

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
        gate = RunGate(
            self._manager.controls, output, target, self._run, self._audit, self._sessions
        )
        return _Model(key, output, target, left, before, gate)


def _first(told: list[Told]) -> Told:
    """Return the first model that is not done."""
    return next(one for one in told if one.missing())


def _has_any(left: _Missing, wanted: _Missing) -> bool:
    return any(slice_ in left.get(key, ()) for key, some in wanted.items() for slice_ in some)


def _kind_is_declared(*_: object) -> Any:
    raise AssertionError("unreachable: a model's slice_kind has a default")
