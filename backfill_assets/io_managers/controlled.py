"""The controls of a run at the IO manager: what is read from settings, tags and metadata, and put into one gate."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from datetime import datetime, timezone
from typing import Any, Literal

import dagster as dg
from pydantic import Field

from backfill_assets.controls.budget import Budget, Limits, within_budget
from backfill_assets.controls.family import Family, root_backfill
from backfill_assets.controls.gate import Control, Gate
from backfill_assets.controls.held import marking_held
from backfill_assets.controls.lanes import BACKFILL, lane_by_tags
from backfill_assets.controls.pausing import Paused, forgotten_pauses
from backfill_assets.controls.reason import missing_reason
from backfill_assets.controls.retention import retention
from backfill_assets.controls.tables import tables_in
from backfill_assets.engines import Report
from backfill_assets.io_managers.computing import Computed
from backfill_assets.io_managers.declaration import plain
from backfill_assets.io_managers.partitions import Target
from backfill_assets.io_managers.run_context import refuse_wrong_tags, step_of
from backfill_assets.io_managers.sessions import Sessions
from backfill_assets.settings import Settings
from backfill_assets.slice import Slice
from backfill_assets.writing import AuditTable, Run

ONE_DOOR = (
    "Backfills use the warehouse target of the live lane, since no other is set: give the IO manager a lane_url (a"
    " lane_warehouse, where it has that field), or set BACKFILL_LANE_WAREHOUSE_URL, to keep them apart."
)


_said: set[str] = set()


def say_once(say: Report, text: str) -> None:
    """Say `text` the first time that this process comes here; a line in the run's log costs as much as a small slice."""
    if text not in _said:
        _said.add(text)
        say(text)


class Controls(dg.Config):
    """What an IO manager asks of its runs; the names and meanings are those of the settings.

    The defaults are those of an IO manager that is made by hand: a drop-in for a stock one asks for no reason. The
    settings' own default is `backfill`, and `from_settings` takes that.
    """

    require_reason: Literal["backfill", "always", "never"] = Field(
        default="never", description="Who must give a reason before a slice is rewritten."
    )
    live_days: int = Field(
        default=3, ge=0, description="Days after its end for which a partition is still live."
    )
    hold_seconds: float = Field(
        default=60, ge=0, description="How long a run waits at a slice for a pause to end."
    )
    budget_seconds: float | None = Field(
        default=None, gt=0, description="Warehouse seconds that one backfill may spend."
    )
    budget_rows: int | None = Field(
        default=None, gt=0, description="Rows that one backfill may write."
    )
    budget_cost: float | None = Field(
        default=None, gt=0, description="What one backfill may cost, in the engine's unit."
    )

    @classmethod
    def of(cls, settings: Settings) -> Controls:
        """Return the controls that the settings ask for."""
        return cls(**{name: getattr(settings, name) for name in cls.model_fields})

    @property
    def budget(self) -> Budget:
        """The caps for each backfill."""
        return Budget(self.budget_seconds, self.budget_rows, self.budget_cost)


def before_anything(
    controls: Controls, run: dg.DagsterRun | None, instance: Any, say: Report
) -> None:
    """Wait for, or refuse, a paused backfill before its asset computes; only its tags are known yet.

    Tags that cannot be right are refused here too, and not when a frame has been made for nothing.
    """
    if run is None or instance is None:
        return
    refuse_wrong_tags(instance, run.tags, run.run_config)
    Budget.of_tags(run.tags)
    if lane_by_tags(run.tags, controls.live_days) == "backfill":
        tables = [
            *(key.to_user_string() for key in run.asset_selection or ()),
            *tables_in(run.tags),
        ]
        paused = Paused(instance, tables, run.tags.get(BACKFILL), root_backfill(run.tags))
        gate = Gate(hold=paused.why, hold_seconds=controls.hold_seconds, say=say)
        with marking_held(instance, run):
            gate.wait(f"run {run.run_id[:8]}")


class RunGate:
    """The gate of one output: `let_in` before a slice is computed, `ask` before it is written.

    Both ask every control, so that nothing is computed that would be refused.
    """

    def __init__(
        self,
        controls: Controls,
        context: dg.OutputContext,
        target: Target,
        run: Run,
        audit: AuditTable,
        sessions: Sessions,
    ) -> None:
        self._step, self._sessions = step_of(context), sessions
        self._names = [target.table.qualified, *([target.asset] if target.asset else [])]
        self._paused = self._paused_for(run)
        self._since: datetime | None = None
        loaded = _Loaded(target.slices, audit, sessions)
        always: list[Control] = [retention(run, datetime.now(timezone.utc))]
        self._limits = _limits(controls, context, run)
        if self._limits is not None and self._step is not None:
            always.append(self._budget(self._limits, audit))

        def gate(was_loaded: Callable[[Slice], bool]) -> Gate:
            return Gate(
                self._hold,
                self._hold_begun,
                (_reason(controls, run, was_loaded), *always),
                controls.hold_seconds,
                context.log.info,
                before_waiting=sessions.release,
                notes=self._notes,
            )

        self._early = gate(loaded.has)
        self._gate = gate(lambda slice_: audit.was_loaded(sessions.get(), slice_))

    def holds(self) -> bool:
        """Tell whether a pause is on."""
        return self._hold() is not None

    def budget_asked_elsewhere(self) -> dict[str, Any] | None:
        """Return as plain values what a program needs that asks for the budget before each of its own slices."""
        if self._limits is None or self._step is None:
            return None
        return self._limits.asked_elsewhere(self._step.instance)

    def let_in(self, slice_: Slice) -> None:
        """Return when the slice may be computed; raise `Held` or `Refused` in words when it may not."""
        with self._marking():
            self._early.ask(slice_)
        self._sessions.release()  # the asset's code runs next, and may open the warehouse itself

    def ask(self, computed: Computed) -> None:
        """Return when the slice may be rewritten; raise `Held` or `Refused` in words when it may not."""
        self._since = computed.since
        with self._marking():
            self._gate.ask(computed.slice, under_way=computed.begun)

    def _budget(self, limits: Limits, audit: AuditTable) -> Control:
        known = (limits.family, limits.given, limits.by_table)
        return within_budget(self._step.instance, *known, self._sessions.get, audit)

    def _paused_for(self, run: Run) -> Paused | None:
        if self._step is None or run.lane != "backfill":
            return None
        backfills = (run.backfill_id, root_backfill(self._step.dagster_run.tags))
        return Paused(self._step.instance, self._names, *backfills)

    def _hold(self) -> str | None:
        return self._paused.why() if self._paused is not None else None

    def _hold_begun(self) -> str | None:
        if self._paused is None or self._since is None:
            return None
        return self._paused.why_before(self._since)

    def _notes(self) -> str:
        return forgotten_pauses(self._step.instance) if self._step is not None else ""

    def _marking(self) -> contextlib.AbstractContextManager[None]:
        if self._step is None:
            return contextlib.nullcontext()
        return marking_held(self._step.instance, self._step.dagster_run, self._names)


class _Loaded:
    """Which slices of an output were loaded before it began: asked once, since opening the warehouse costs much."""

    def __init__(self, slices: Sequence[Slice], audit: AuditTable, sessions: Sessions) -> None:
        self._slices, self._audit, self._sessions = slices, audit, sessions
        self._found: frozenset[Slice] | None = None

    def has(self, slice_: Slice) -> bool:
        if self._found is None:
            told = self._audit.were_loaded(self._sessions.get(), self._slices)
            self._found = frozenset(s for s, was in zip(self._slices, told, strict=True) if was)
        return slice_ in self._found


def _limits(controls: Controls, context: dg.OutputContext, run: Run) -> Limits | None:
    """Return what the run may spend; None for a live one."""
    step = step_of(context)
    by_table = Budget.of(plain((context.definition_metadata or {}).get("budget")) or {})
    if step is None or run.lane != "backfill":
        return None
    given = Budget.of_tags(step.dagster_run.tags).over(controls.budget)
    return Limits(Family.of(step.dagster_run, run.backfill_id), given, by_table)


def _reason(controls: Controls, run: Run, was_loaded: Callable[[Slice], bool]) -> Control:
    def why(slice_: Slice) -> str | None:
        demand = controls.require_reason
        return missing_reason(demand, run.lane, run.reason, lambda: was_loaded(slice_))

    return why
