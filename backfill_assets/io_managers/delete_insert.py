"""Dagster at the edge: context -> slices -> compute -> rewrite -> metadata, one transaction per partition."""

from __future__ import annotations

import contextlib
import dataclasses
from typing import Any

import dagster as dg
from pydantic import Field, PrivateAttr

from backfill_assets.controls.lanes import lane_by_tags
from backfill_assets.engines import Engine, Report, open_engine
from backfill_assets.engines.doors import must_be_one, must_be_one_inside
from backfill_assets.io_managers.computing import adapted, batches
from backfill_assets.io_managers.controlled import (
    ONE_DOOR,
    Controls,
    RunGate,
    before_anything,
    say_once,
)
from backfill_assets.io_managers.kinds import kind_of
from backfill_assets.io_managers.loading import load as load_upstream
from backfill_assets.io_managers.output import Output
from backfill_assets.io_managers.partitions import target_of
from backfill_assets.io_managers.reading import read_once
from backfill_assets.io_managers.reporting import as_failure, tell
from backfill_assets.io_managers.resuming import written_before
from backfill_assets.io_managers.run_context import ended_of_run, run_of, step_of
from backfill_assets.io_managers.sessions import Sessions
from backfill_assets.io_managers.values import PerRange, PerSlice
from backfill_assets.settings import is_set, settings, variable
from backfill_assets.slice import Slice
from backfill_assets.writing import AuditTable, Run
from backfill_assets.writing.run import Lane


class DeleteInsertIOManager(dg.ConfigurableIOManager):
    """Stores each partition by replacing its slice, all or nothing, and loads partitions back.

    Assets may return a pandas DataFrame, an Arrow table, a `Select` that stays in the warehouse, a
    `PerSlice` function, or a `PerRange` that reads once for all slices of a run. Inputs come as pandas (the default), Arrow or a `Relation`, by annotation.
    """

    url: str = Field(
        description="The warehouse: duckdb:///warehouse.duckdb, postgresql://user@host/db ..."
    )
    schema_: str | None = Field(
        default=None,
        alias="schema",
        description="The schema of assets whose metadata names none; without it, their key prefix.",
    )
    audit_schema: str = Field(
        default="backfill", description="The schema of the audit table load_audit."
    )
    lane_url: str | None = Field(
        default=None,
        description="The same warehouse by another door, for runs of the backfill lane: a role, warehouse or limits of its own.",
    )
    controls: Controls = Field(
        default_factory=Controls, description="What is asked before each slice."
    )

    _engines: dict[Lane, Engine] = PrivateAttr(default_factory=dict)

    @classmethod
    def from_settings(cls) -> DeleteInsertIOManager:
        """Return the IO manager that the environment asks for; URLs by name, so that the UI shows no password."""
        chosen = settings()
        # what no engine understands, and a lane that leads elsewhere, is refused here, not in a run
        live = open_engine(chosen.warehouse_url)
        if chosen.lane_warehouse_url is not None:
            must_be_one(live, open_engine(chosen.lane_warehouse_url))

        def url(field: str) -> Any:
            return dg.EnvVar(variable(field)) if is_set(field) else getattr(chosen, field)

        return cls(
            url=url("warehouse_url"),
            lane_url=url("lane_warehouse_url"),
            audit_schema=chosen.audit_schema,
            controls=Controls.of(chosen),
        )

    @property
    def engine(self) -> Engine:
        """The warehouse behind the URL; asking for it connects to nothing."""
        return self.engine_of("live")

    def engine_of(self, lane: Lane) -> Engine:
        """Return the warehouse as runs of `lane` reach it; raise where that is another one than live runs reach."""
        if lane not in self._engines:
            self._engines[lane] = self._engine(lane)
        return self._engines[lane]

    @property
    def has_lane(self) -> bool:
        """Whether runs of the backfill lane reach the warehouse by a door of their own."""
        return bool(self.lane_url)

    def _engine(self, lane: Lane) -> Engine:
        own = self.lane_url if lane == "backfill" else None
        found = open_engine(own or self.url)
        if own:
            must_be_one_inside(self.engine_of("live"), found)
        return found

    def setup_for_execution(self, context: dg.InitResourceContext) -> None:
        """Let no asset of a paused backfill compute."""
        with as_failure():
            before_anything(self.controls, context.run, context.instance, _say_of(context))

    def handle_output(self, context: dg.OutputContext, obj: Any) -> None:
        """Replace the run's slices by `obj`, in partition order; a failure keeps those before it."""
        if obj is None:
            raise dg.DagsterInvariantViolationError(
                "The asset returned None, so nothing was written. Annotate it '-> None' if that is right."
            )
        with as_failure():
            run = run_of(context, self.controls.live_days)
            rows = adapted(obj, _named(context))
            if run.lane == "backfill" and not self.has_lane:
                say_once(context.log.info, ONE_DOOR)
            who = f"run {run.run_id[:8]}"
            with Sessions(self.engine_of(run.lane), who, context.log.info) as sessions:
                self._replace(context, rows, run, sessions)

    def _replace(self, context: dg.OutputContext, rows: Any, run: Run, sessions: Sessions) -> None:
        """Replace the slices that the output is about, apart from those that a run before this one has."""
        audit, metadata = AuditTable(schema=self.audit_schema), context.definition_metadata or {}
        target = target_of(
            context,
            metadata,
            self.schema_,
            lambda table, column: kind_of(sessions.get(), table, column, rows),
        )
        before = written_before(step_of(context), target, audit, sessions)
        left = [slice_ for slice_ in target.slices if slice_.name not in before]
        if len(left) < len(target.slices):
            context.log.info(
                f"{len(target.slices) - len(left)} partitions were committed before this run took over;"
                f" {len(left)} are left."
            )
        if isinstance(rows, PerRange):
            run = dataclasses.replace(run, strategy=rows.strategy)
        if isinstance(rows, (PerSlice, PerRange)):
            sessions.release()  # the asset's code runs next, and may open the warehouse itself
        gate = RunGate(self.controls, context, target, run, audit, sessions)
        with contextlib.ExitStack() as source:
            if isinstance(rows, PerRange):
                left, rows = _opened(source, rows, left, run, gate, sessions, context.log.info)
            read_at = read_once(step_of(context), rows, run)
            parts = batches(target.slices, left, rows, run, gate, read_at)
            done = Output(context, left, sessions, gate, audit).write(parts)
        loads = {**before, **{load.partition_key: load for load in done}}
        tell(context, target, loads, sessions.spelling)

    def load_input(self, context: dg.InputContext) -> Any:
        """Return the upstream partitions: pandas by default, Arrow or a `Relation` where annotated so."""
        with as_failure():
            engine = self.engine_of(_lane_of_reader(context, self.controls.live_days))
            with Sessions(engine, "a reader", context.log.info, read_only=True) as sessions:
                return load_upstream(context, sessions, engine.spelling, self.schema_)


def _opened(
    source: contextlib.ExitStack,
    rows: PerRange,
    left: list[Slice],
    run: Run,
    gate: RunGate,
    sessions: Sessions,
    say: Report,
) -> tuple[list[Slice], PerSlice]:
    """Open what is read once for all slices that are left, and return them in the order in which they are written."""
    if not left:
        return left, PerSlice(lambda _: None)
    gate.let_in(left[0])  # nothing is read that would be refused
    opened = source.enter_context(rows.open(left, run, sessions, say))
    sessions.release()
    return list(opened.slices), PerSlice(opened.compute)


def _named(context: dg.OutputContext) -> str:
    return context.asset_key.to_user_string() if context.has_asset_key else context.name


def _say_of(context: dg.InitResourceContext) -> Report:
    return context.log.info if context.log is not None else lambda _: None


def _lane_of_reader(context: dg.InputContext, live_days: int) -> Lane:
    """Return the lane of the run that reads, which is the one that it writes in."""
    try:
        step = context.step_context
    except Exception:  # loaded by hand, outside a run
        return "live"
    return lane_by_tags(step.dagster_run.tags, live_days, ended_of_run(step))
