"""Jobs for people: pause and resume backfills, raise a budget. From the launchpad, or `dagster job launch`."""

import dagster as dg
from pydantic import Field

from backfill_assets.controls.breaker import BY, forgive
from backfill_assets.controls.budget import USED_UP, Budget, raise_budget
from backfill_assets.controls.family import root_of
from backfill_assets.controls.lanes import CONTROL, PRIORITY
from backfill_assets.controls.switch import Scope, Switch
from backfill_assets.controls.tables import names_of, table_of
from backfill_assets.errors import BackfillError, DeclarationError
from backfill_assets.io_managers.reporting import as_failure
from backfill_assets.settings import settings


class SwitchConfig(dg.Config):
    """Whose backfills, why, and who says so."""

    reason: str = Field(description="Why, in a sentence that everyone who is stopped will read.")
    by: str = Field(description="Who you are.")
    table: str | None = Field(
        default=None, description="Only backfills of this table or asset (schema.table)."
    )
    backfill: str | None = Field(default=None, description="Only this backfill, by its id.")


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
        _must_exist(context, config.backfill)
        scope = _whole(context, Scope(config.table, config.backfill))
        made = Switch(context.instance).pause(scope, config.reason, config.by)
        context.log.info(f"From now on: {made.told(made.since)}.")


@dg.op
def resume_backfills_op(context: dg.OpExecutionContext, config: SwitchConfig) -> None:
    """End exactly the pause of this scope; others stay on, and are told."""
    with as_failure():
        switch, scope = Switch(context.instance), Scope(config.table, config.backfill)
        if scope not in {pause.scope for pause in switch.pauses()}:  # perhaps by another name
            scope = _whole(context, scope)
        left = switch.resume(scope, config.reason, config.by)
        _forgive(context, scope)
        still = "; ".join(pause.told(pause.since) for pause in left)
        context.log.info(
            f"{scope.name} goes on. {f'Still on: {still}.' if still else 'No pause is left.'}"
        )


@dg.op
def raise_budget_op(context: dg.OpExecutionContext, config: BudgetConfig) -> None:
    """Let a backfill spend up to these caps in all."""
    with as_failure():
        _must_exist(context, config.backfill)
        caps = config.model_dump(exclude={"backfill", "reason", "by"})
        budget = Budget.of({name: cap for name, cap in caps.items() if cap is not None})
        given = _given(context.instance, config.backfill)
        raise_budget(context.instance, config.backfill, budget, config.by, config.reason, given)
        context.log.info(f"Backfill {config.backfill} may spend {budget.told}.")
        if end_pause_of_budget(context.instance, config.backfill, config.reason, config.by):
            context.log.info("The pause that its budget caused has ended.")


# quick, and with one step: a process for it would only delay the pause
_OPTIONS = {"executor_def": dg.in_process_executor, "tags": {CONTROL: "yes", PRIORITY: "100"}}


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


def scope_in(repository: dg.RepositoryDefinition, scope: Scope) -> Scope:
    """Return the scope with every name of its table, by whichever of them it is given; raise when there is none."""
    if scope.table is None:
        return scope
    assets = {
        key: asset.metadata_by_key.get(key, {})
        for key, asset in repository.assets_defs_by_key.items()
    }
    tables = {
        table_of(key, assets[key]) for key in assets if scope.table in names_of(key, assets[key])
    }
    if not tables:
        raise DeclarationError(
            f"{scope.table!r} was not switched",
            "no asset of this location has that key or writes that table",
            "Write it as schema.table or as the asset's key",
        )
    table = scope.table if scope.table in tables else min(tables)
    writers = (key.to_user_string() for key in assets if table_of(key, assets[key]) in tables)
    return Scope(table, assets=tuple(sorted(writers)))


def _whole(context: dg.OpExecutionContext, scope: Scope) -> Scope:
    """Return the scope by the names under which it is switched: all of a table's, and a backfill's first id."""
    if scope.backfill is not None:
        return Scope(backfill=root_of(context.instance, scope.backfill))
    return scope_in(context.repository_def, scope)


def _forgive(context: dg.OpExecutionContext, scope: Scope) -> None:
    """Count a backfill's failures anew; the pause has ended, whether or not that works."""
    try:
        if scope.backfill is not None:
            forgive(context.instance, scope.backfill)
    except BackfillError as error:
        context.log.warning(f"Its failures before this are counted with those to come: {error}")


def end_pause_of_budget(instance: dg.DagsterInstance, backfill: str, reason: str, by: str) -> bool:
    """End the pause that the breaker made since a budget was used up; what was paused for anything else stays so."""
    switch, scope = Switch(instance), Scope(backfill=root_of(instance, backfill))
    for pause in switch.pauses():
        if pause.scope == scope and pause.by == BY and USED_UP in pause.reason:
            switch.resume(scope, reason, by)
            return True
    return False


def _given(instance: dg.DagsterInstance, backfill: str) -> Budget:
    """Return the budget that a backfill has by its tags and the settings."""
    found, chosen = instance.get_backfill(backfill), settings()
    by_settings = Budget(chosen.budget_seconds, chosen.budget_rows, chosen.budget_cost)
    return Budget.of_tags(found.tags if found is not None else {}).over(by_settings)


def _must_exist(context: dg.OpExecutionContext, backfill: str | None) -> None:
    """Raise when the instance has no such backfill."""
    if backfill is not None and context.instance.get_backfill(backfill) is None:
        raise DeclarationError(
            f"backfill {backfill!r} was not changed",
            "there is no backfill with that id",
            "Copy the id from the backfill's page",
        )
