"""The nightly reconciliation as an asset by days, its checks, and the schedule that runs it."""

from collections.abc import Iterable, Sequence
from datetime import timedelta
from typing import Any

import dagster as dg

from backfill_assets.controls.lanes import RANGE, lane_by_tags
from backfill_assets.errors import BackfillError, DeclarationError
from backfill_assets.io_managers.check_results import CheckFound, results
from backfill_assets.io_managers.reporting import as_failure
from backfill_assets.slice import Slice
from backfill_assets.strategies.dual_write.migration import Migration
from backfill_assets.strategies.reconcile.comparing import compare, null_days
from backfill_assets.strategies.reconcile.day import DayCompared, KeyFound
from backfill_assets.strategies.reconcile.picture import as_text
from backfill_assets.strategies.reconcile.store import ReconciliationStore
from backfill_assets.strategies.reconcile.streak import newest_due
from backfill_assets.strategies.reconcile.wording import CHECKS, metadata_of
from backfill_assets.window import Window

_AT_ONCE = 31  # days that are stored together
_SHOWN = 60  # days of the picture


def reconciliation_key(migration: Migration) -> dg.AssetKey:
    """Return the key of the asset that compares a migration."""
    return dg.AssetKey(["reconciliation", migration.name])


def reconciliation_asset(
    migration: Migration,
    *,
    partitions_def: dg.TimeWindowPartitionsDefinition,
    deps: Iterable[Any] = (),
    group_name: str | None = "reconciliation",
    io_manager_key: str = "io_manager",
) -> dg.AssetsDefinition:
    """Return the asset whose partitions are days compared: both sides read, nothing of them written.

    `partitions_def` is of whole days of the new side's zone. Each run compares all of its days; a day that is compared
    again replaces what was known of it in `reconciliation_daily` and `reconciliation_keys`. `deps` are the assets of
    both sides. The warehouse is that of the IO manager; sides elsewhere name theirs.
    """
    key = reconciliation_key(migration)
    _must_be_days(migration, partitions_def)

    @dg.multi_asset(
        name=f"reconcile_{migration.name}",
        specs=[
            dg.AssetSpec(
                key,
                deps=list(deps),
                group_name=group_name,
                description=f"{migration.old.name} and {migration.new.name} compared, day by day and key by key.",
                kinds={"reconciliation"},
                metadata={"migration": migration.name, "old": migration.old.name, "new": migration.new.name},
            )
        ],
        partitions_def=partitions_def,
        backfill_policy=dg.BackfillPolicy.single_run(),
        required_resource_keys={io_manager_key},
    )  # fmt: skip
    def reconciled(context: dg.AssetExecutionContext) -> None:
        manager: Any = getattr(context.resources, io_manager_key)
        with as_failure():
            compared = _reconcile(context, migration, manager, partitions_def)
        for day, keys in compared:
            told = metadata_of(day, keys)
            if day is compared[-1][0]:  # the picture belongs to the newest of them
                told["daily_difference"] = _picture(manager, migration)
            context.add_asset_metadata(told, key, day.partition_key)

    return reconciled


def reconciliation_checks(
    migration: Migration,
    *,
    partitions_def: dg.TimeWindowPartitionsDefinition,
    io_manager_key: str = "io_manager",
) -> dg.AssetChecksDefinition:
    """Return `within_threshold` (an error where it fails), `keys_match` and `totals_match` (warnings), for each day."""
    key = reconciliation_key(migration)

    @dg.multi_asset_check(
        name=f"check_reconciliation_{migration.name}",
        specs=[
            dg.AssetCheckSpec(name, asset=key, partitions_def=partitions_def, description=told)
            for name, (_, _, told) in CHECKS.items()
        ],
        required_resource_keys={io_manager_key},
        can_subset=True,
    )
    def check(context: dg.AssetCheckExecutionContext):
        manager: Any = getattr(context.resources, io_manager_key)
        wanted = [one.name for one in context.selected_asset_check_keys]
        with as_failure():
            known = _known(manager, migration)
            found = [
                _found(migration, check, name, known)
                for check in wanted
                for name in context.partition_keys
            ]
        yield from results(context, key, wanted, found)

    return check


def reconciliation_schedule(
    migration: Migration,
    job: Any,
    *,
    partitions_def: dg.TimeWindowPartitionsDefinition,
    cron_schedule: str = "0 6 * * *",
) -> dg.ScheduleDefinition:
    """Return the schedule, off by default, that compares the newest `quiet_days` days that are due, each night again.

    A day that has not changed costs its marks only; one that was loaded again is compared as it is now.
    """

    @dg.schedule(
        name=f"reconcile_{migration.name}_nightly",
        job=job,
        cron_schedule=cron_schedule,
        execution_timezone=migration.new.column.zone,
        description=f"Compares the last {migration.quiet_days} days of {migration.name} that are due.",
    )
    def nightly(context: dg.ScheduleEvaluationContext) -> dg.RunRequest | dg.SkipReason:
        zone = migration.new.column.zone
        last = newest_due(zone, context.scheduled_execution_time, migration.due_hours)
        day = last.days(zone)[0]
        begun = partitions_def.start.date()
        if day < begun:
            return dg.SkipReason(f"no day is due yet: the first one is {begun}")
        first = max(day - timedelta(days=migration.quiet_days - 1), begun)
        return dg.RunRequest(
            run_key=day.isoformat(),
            tags=dict(zip(RANGE, (first.isoformat(), day.isoformat()), strict=True)),
        )

    return nightly


def _reconcile(
    context: dg.AssetExecutionContext,
    migration: Migration,
    manager: Any,
    partitions_def: dg.TimeWindowPartitionsDefinition,
) -> list[tuple[DayCompared, list[KeyFound]]]:
    """Compare the run's days, and store what came of them."""
    engine = manager.engine_of(lane_by_tags(context.run.tags, manager.controls.live_days))
    store, who = ReconciliationStore(manager.audit_schema), f"reconcile {migration.name}"
    slices = [
        Slice(
            migration.new.table,
            Window.of(partitions_def.time_window_for_partition_key(name)),
            partition=name,
        )
        for name in context.partition_keys
    ]
    with migration.new.engine(engine).session(who=who, report=context.log.info) as session:
        store.ensure(session)
    for side, rows in zip(
        (migration.old, migration.new), null_days(migration, engine), strict=True
    ):
        if rows:
            context.log.warning(
                f"{rows:,} rows of {side.name} have no {side.column.name} and so no day: they are never compared."
            )
    done: list[tuple[DayCompared, list[KeyFound]]] = []
    for first in range(0, len(slices), _AT_ONCE):
        found: list[tuple[DayCompared, list[KeyFound]]] = []
        comparing = compare(
            migration,
            slices[first : first + _AT_ONCE],
            engine,
            run_id=context.run.run_id,
            who=who,
            report=context.log.info,
        )
        error = None
        try:
            for one in comparing:
                found.append(one)
        except BackfillError as why:
            error = why
        with migration.new.engine(engine).session(who=who, report=context.log.info) as session:
            store.replace(session, found, context.run.run_id)
        done += found
        if error is not None:  # the days before it are kept, and told
            _keep(context, migration, done)
            raise error
        quiet = sum(day.is_quiet for day, _ in done)
        context.log.info(
            f"{len(done)} of {len(slices)} days are compared, {quiet} of them are quiet."
        )
    return done


def _keep(
    context: dg.AssetExecutionContext,
    migration: Migration,
    done: Sequence[tuple[DayCompared, list[KeyFound]]],
) -> None:
    """Before the run fails: let Dagster know the days that are compared."""
    for day, keys in done:
        context.log_event(
            dg.AssetMaterialization(
                asset_key=reconciliation_key(migration),
                partition=day.partition_key,
                metadata=metadata_of(day, keys),
            )
        )


def _picture(manager: Any, migration: Migration) -> dg.MarkdownMetadataValue:
    days = list(_known(manager, migration).values())[-_SHOWN:]
    return dg.MetadataValue.md("```\n" + "\n".join(as_text(days)) + "\n```")


def _known(manager: Any, migration: Migration) -> dict[str, DayCompared]:
    engine = migration.new.engine(manager.engine_of("live"))
    with engine.session(who=f"reconcile {migration.name}", read_only=True) as session:
        days = ReconciliationStore(manager.audit_schema).days(session, migration.name)
    return {day.partition_key: day for day in days}


def _found(
    migration: Migration, check: str, name: str, known: dict[str, DayCompared]
) -> CheckFound:
    judge, blocks, _ = CHECKS[check]
    day = known.get(name)
    if day is None:
        return CheckFound(check, name, name, False, blocks, "the day has not been compared")
    passed, why = judge(migration, day)
    return CheckFound(check, name, name, passed, blocks, why, metadata_of(day, ()))


def _must_be_days(migration: Migration, given: Any) -> None:
    zone = migration.new.column.zone
    daily = isinstance(given, dg.DailyPartitionsDefinition)
    if (
        not daily
        or (given.timezone or "UTC") != zone
        or (given.hour_offset, given.minute_offset) != (0, 0)
    ):
        raise DeclarationError(
            f"the migration {migration.name} cannot be reconciled by these partitions",
            f"they are {given}, and its new table has days of {zone}",
            f"Give DailyPartitionsDefinition(start_date=..., timezone={zone!r})",
        )
