"""Jobs for people: pause and resume backfills, raise a budget. From the launchpad, or `dagster job launch`."""

import dagster as dg
from pydantic import Field

from backfill_assets.controls.budget import Budget, raise_budget
from backfill_assets.controls.switch import Scope, Switch
from backfill_assets.errors import DeclarationError
from backfill_assets.io_managers.reporting import as_failure
from backfill_assets.operations.location import asset_named


class SwitchConfig(dg.Config):
    """Whose backfills, why, and who says so."""

    reason: str = Field(description="Why, in a sentence that everyone who is stopped will read.")
    by: str = Field(description="Who you are.")
    table: str | None = Field(
        default=None, description="Only backfills of this table or asset (schema.table)."
    )
    backfill: str | None = Field(default=None, description="Only this backfill, by its id.")

    @property
    def scope(self) -> Scope:
        """What is to be switched."""
        return Scope(self.table, self.backfill)


class BudgetConfig(dg.Config):
    """New caps for one backfill; what is left out stays."""

    backfill: str = Field(description="The backfill's id.")
    reason: str = Field(description="Why it may spend more.")
    by: str = Field(description="Who you are.")
    seconds: float | None = Field(default=None, description="Warehouse seconds in all.")
    rows: int | None = Field(default=None, description="Rows in all.")
    cost: float | None = Field(default=None, description="Cost in all, in the engine's unit.")
    deadline: str | None = Field(
        default=None, description="No slice is begun after it: 2026-12-02T06:00+00:00."
    )


@dg.op
def pause_backfills_op(context: dg.OpExecutionContext, config: SwitchConfig) -> None:
    """Pause backfills: running slices finish, nothing new starts, live runs are untouched."""
    with as_failure():
        _must_exist(context, config.table, config.backfill)
        made = Switch(context.instance).pause(config.scope, config.reason, config.by)
        context.log.info(f"From now on: {made.told(made.since)}.")


@dg.op
def resume_backfills_op(context: dg.OpExecutionContext, config: SwitchConfig) -> None:
    """End exactly the pause of this scope; others stay on, and are told."""
    with as_failure():
        left = Switch(context.instance).resume(config.scope, config.reason, config.by)
        still = "; ".join(pause.told(pause.since) for pause in left)
        context.log.info(
            f"{config.scope.name} goes on. {f'Still on: {still}.' if still else 'No pause is left.'}"
        )


@dg.op
def raise_budget_op(context: dg.OpExecutionContext, config: BudgetConfig) -> None:
    """Let a backfill spend up to these caps in all."""
    with as_failure():
        _must_exist(context, None, config.backfill)
        caps = config.model_dump(exclude={"backfill", "reason", "by"})
        budget = Budget.of({name: cap for name, cap in caps.items() if cap is not None})
        raise_budget(context.instance, config.backfill, budget, config.by, config.reason)
        context.log.info(f"Backfill {config.backfill} may spend {budget.told}.")


# quick, and with one step: a process for it would only delay the pause
_OPTIONS = {"executor_def": dg.in_process_executor, "tags": {"dagster/priority": "100"}}


@dg.job(**_OPTIONS)
def pause_backfills() -> None:
    """Pause all backfills, those of one table, or one backfill."""
    pause_backfills_op()


@dg.job(**_OPTIONS)
def resume_backfills() -> None:
    """End a pause."""
    resume_backfills_op()


@dg.job(name="raise_budget", **_OPTIONS)
def raise_budget_job() -> None:
    """Raise what one backfill may spend."""
    raise_budget_op()


def _must_exist(context: dg.OpExecutionContext, table: str | None, backfill: str | None) -> None:
    """Raise when no asset of the location is that table, or the instance has no such backfill."""
    if table is not None:
        asset_named(context.repository_def, table, f"{table!r} was not switched")
    if backfill is not None and context.instance.get_backfill(backfill) is None:
        raise DeclarationError(
            f"backfill {backfill!r} was not changed",
            "there is no backfill with that id",
            "Copy the id from the backfill's page",
        )
