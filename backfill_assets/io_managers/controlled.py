"""The controls of a run at the IO manager: what is read from settings, tags and metadata, and put into one gate."""

from __future__ import annotations

import contextlib
from datetime import datetime, timezone
from typing import Any, Literal

import dagster as dg
from pydantic import Field

from backfill_assets.controls.budget import Budget, within_budget
from backfill_assets.controls.family import Family, root_backfill
from backfill_assets.controls.gate import Control, Gate, Hold
from backfill_assets.controls.held import marking_held
from backfill_assets.controls.lanes import BACKFILL, lane_by_tags
from backfill_assets.controls.pausing import Paused, forgotten_pauses
from backfill_assets.controls.reason import missing_reason
from backfill_assets.controls.retention import retention
from backfill_assets.controls.tables import tables_in
from backfill_assets.engines import Report
from backfill_assets.io_managers.declaration import plain
from backfill_assets.io_managers.partitions import Target
from backfill_assets.io_managers.run_context import step_of
from backfill_assets.io_managers.sessions import Sessions
from backfill_assets.settings import Settings
from backfill_assets.slice import Slice
from backfill_assets.writing import AuditTable, Run

ONE_DOOR = (
    "Backfills use the warehouse target of the live lane, since no other is set: give the IO manager a lane_url, or"
    " set BACKFILL_LANE_WAREHOUSE_URL, to keep them apart."
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
    """Wait for, or refuse, a paused backfill before its asset computes; only its tags are known yet."""
    if run is None or instance is None:
        return
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
    """The gate of one output: `wait` before a slice is computed, `ask` before it is written."""

    def __init__(
        self,
        controls: Controls,
        context: dg.OutputContext,
        target: Target,
        run: Run,
        audit: AuditTable,
        sessions: Sessions,
    ) -> None:
        step = step_of(context)
        names = [target.table.qualified, *([target.asset] if target.asset else [])]
        asked: list[Control] = [
            _reason(controls, run, audit, sessions),
            retention(run, datetime.now(timezone.utc)),
        ]
        hold: Hold = _nothing
        at_start: Hold = _nothing
        if step is not None and run.lane == "backfill":
            backfills = (run.backfill_id, root_backfill(step.dagster_run.tags))
            paused, began = Paused(step.instance, names, *backfills), run.source_read_at
            hold = paused.why
            at_start = hold if began is None else lambda: paused.why_before(began)
            given = Budget.of_tags(step.dagster_run.tags).over(controls.budget)
            by_table = Budget.of(plain((context.definition_metadata or {}).get("budget")) or {})
            family = Family.of(step.dagster_run, run.backfill_id)
            asked.append(within_budget(step.instance, family, given, by_table, sessions.get, audit))
        self._step, self._names = step, names
        self._gate = Gate(
            hold,
            at_start,
            tuple(asked),
            controls.hold_seconds,
            context.log.info,
            before_waiting=sessions.release,
            notes=lambda: forgotten_pauses(step.instance) if step is not None else "",
        )

    def wait(self, slice_: Slice) -> None:
        """Return when nothing holds the run; raise `Held` when something still does after the wait."""
        with self._marking():
            self._gate.wait(slice_.label)

    def ask(self, slice_: Slice, *, under_way: bool) -> None:
        """Return when the slice may be rewritten; raise `Refused` in words when it may not."""
        with self._marking():
            self._gate.ask(slice_, under_way=under_way)

    def _marking(self) -> contextlib.AbstractContextManager[None]:
        if self._step is None:
            return contextlib.nullcontext()
        return marking_held(self._step.instance, self._step.dagster_run, self._names)


def _nothing() -> None:
    return None


def _reason(controls: Controls, run: Run, audit: AuditTable, sessions: Sessions) -> Control:
    def why(slice_: Slice) -> str | None:
        return missing_reason(
            controls.require_reason,
            run.lane,
            run.reason,
            lambda: audit.was_loaded(sessions.get(), slice_),
        )

    return why
