"""Jobs for people: cut over, roll back, retire the old table, and ask where a migration is; dry runs unless told otherwise."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from datetime import datetime
from functools import cache
from typing import Any

import dagster as dg
from pydantic import Field

from backfill_assets.controls.lanes import CONTROL, PRIORITY
from backfill_assets.engines.protocol import Session
from backfill_assets.errors import DeclarationError
from backfill_assets.io_managers.reporting import as_failure
from backfill_assets.strategies.cutover.cutting import Status, cut_over, retire, roll_back, status
from backfill_assets.strategies.cutover.guards import (
    Guard,
    asked,
    fresh,
    named,
    policies_alike,
    types_kept,
)
from backfill_assets.strategies.cutover.writers import Writers, no_backfill, no_run, not_paused
from backfill_assets.strategies.dual_write import Migration
from backfill_assets.strategies.reconcile.again import beside, changed_since, without_a_day
from backfill_assets.strategies.reconcile.streak import Streak, streak_of
from backfill_assets.writing.audit import AuditTable

StreakOf = Callable[[Session, Migration, AuditTable, datetime], Streak]

_NAME = Field(description="The migration's name.")
_DRY = Field(default=True, description="Only show what would be done and everything against it.")
_WHY = Field(default="", description="Why, in a sentence that still makes sense in a year.")
_BY = Field(default="", description="Who you are.")


class MoveConfig(dg.Config):
    """Which migration, who says so and why, and what stands in the way and is passed."""

    migration: str = _NAME
    dry_run: bool = _DRY
    reason: str = _WHY
    by: str = _BY
    override: list[str] = Field(
        default=[], description="Guards to pass, by name; the reason has to say why that is right."
    )


class RetireConfig(dg.Config):
    """Which old table may be dropped."""

    migration: str = _NAME
    dry_run: bool = _DRY
    reason: str = _WHY
    by: str = _BY
    drop_table: str = Field(
        default="", description="The old table (schema.table), to say yes to its removal."
    )


class ReadinessConfig(dg.Config):
    """Whose cutover."""

    migration: str = _NAME


class StatusConfig(dg.Config):
    """Whose state."""

    migration: str = Field(default="", description="Only this migration; empty: all of them.")


def cutover_jobs(
    migrations: Sequence[Migration],
    io_manager_key: str = "io_manager",
    *,
    streak: StreakOf = streak_of,
) -> list[dg.JobDefinition]:
    """Return the jobs `cut_over`, `roll_back`, `retire_legacy`, `cutover_readiness` and `migration_status`.

    They reach the warehouse through the IO manager of that key, and the new side's where that has one of its own.
    """
    room = _Room(migrations, io_manager_key, streak)
    return [
        _job("cut_over", _cut_over_op(room), "Let readers read the new table, unless something is against it."),
        _job("roll_back", _roll_back_op(room), "Let readers read the old table again."),
        _job("retire_legacy", _retire_op(room), "Drop the old table, once its time has come and it is named."),
        _job("cutover_readiness", _readiness_op(room), "What still stands in the way of a cutover; changes nothing."),
        _job("migration_status", _status_op(room), "Where each migration is; writes nothing."),
    ]  # fmt: skip


class _Room:
    """What the ops have in common: the migrations, and how their warehouse is reached."""

    def __init__(self, migrations: Sequence[Migration], key: str, streak: StreakOf) -> None:
        self.migrations = {migration.name: migration for migration in migrations}
        self.key, self.streak = key, streak
        if len(self.migrations) < len(migrations):
            names = ", ".join(sorted(migration.name for migration in migrations))
            raise DeclarationError(
                "the jobs of the migrations cannot be made",
                f"two migrations have one name ({names})",
                "Give each a name of its own",
            )

    def named(self, name: str, what: str) -> Migration:
        """Return the migration; raise when there is none of that name."""
        if name not in self.migrations:
            known = ", ".join(sorted(self.migrations)) or "none"
            raise DeclarationError(
                f"{what} did nothing", f"there is no migration {name!r}", f"Choose from {known}"
            )
        return self.migrations[name]

    @contextmanager
    def session(
        self, context: dg.OpExecutionContext, migration: Migration, *, read_only: bool = False
    ) -> Iterator[Session]:
        """Open a session of the warehouse of the view."""
        manager = self.manager(context)
        engine = migration.new.engine(manager.engine_of("live"))
        who = f"run {context.run_id[:8]}"
        with engine.session(who=who, read_only=read_only, report=context.log.info) as session:
            yield session

    def manager(self, context: dg.OpExecutionContext) -> Any:
        """Return the IO manager."""
        return getattr(context.resources, self.key)

    def looked_at(self, context: dg.OpExecutionContext, migration: Migration) -> list[Guard]:
        """Look at the quiet days and their rows, in sessions of their own: where one connection is all there is, it is free."""
        manager = self.manager(context)
        engine, audit = manager.engine_of("live"), AuditTable(schema=manager.audit_schema)

        @cache
        def streak() -> Streak:
            with self.session(context, migration, read_only=True) as session:
                return self.streak(session, migration, audit, session.clock())

        # asked now and told later: the session of the move is not open yet
        told = {
            "streak": asked(lambda: streak().why),
            "unchanged": asked(lambda: changed_since(migration, streak(), engine)),
            "every_row_has_a_day": asked(lambda: without_a_day(migration, engine)),
            "history": asked(lambda: beside(migration, streak(), engine)),
        }
        return [named(name, lambda why=why: why) for name, why in told.items()]

    def guards(
        self,
        context: dg.OpExecutionContext,
        session: Session,
        migration: Migration,
        looked: Sequence[Guard],
    ) -> list[Guard]:
        """Return everything that is asked before readers are moved to the new table."""
        manager, now = self.manager(context), session.clock()
        writers = Writers.of(context.repository_def, migration, manager.schema_)
        return [
            *looked,
            fresh(session, migration, now),
            no_backfill(context.instance, writers),
            no_run(context.instance, writers, context.repository_def, context.run_id),
            not_paused(context.instance, writers),
            policies_alike(session, migration),
            types_kept(session, migration),
        ]


def _op(room: _Room, name: str) -> Any:
    return dg.op(
        name=f"{name}_op", required_resource_keys={room.key}, out=dg.Out(io_manager_key="moves_out")
    )


def _cut_over_op(room: _Room) -> Any:
    @_op(room, "cut_over")
    def cut_over_op(context: dg.OpExecutionContext, config: MoveConfig) -> dict:
        """Ask every guard; without dry_run, flip the view, record it, and read through it."""
        with as_failure():
            found = _cut_over(room, context, config, "cut_over")
        return _shown(context, found)

    return cut_over_op


def _readiness_op(room: _Room) -> Any:
    @_op(room, "cutover_readiness")
    def cutover_readiness_op(context: dg.OpExecutionContext, config: ReadinessConfig) -> dict:
        """Ask every guard of a cutover, and try the flip where it can be undone."""
        with as_failure():
            found = _cut_over(room, context, MoveConfig(migration=config.migration), "cutover_readiness")  # fmt: skip
        context.log.info(
            f"{found.migration} is ready: nothing stands in the way of cut_over."
            if not found.refusals
            else f"{found.migration} is not ready: {'; '.join(found.refusals)}."
        )
        return _shown(context, found)

    return cutover_readiness_op


def _cut_over(room: _Room, context: dg.OpExecutionContext, config: MoveConfig, what: str) -> Status:
    migration = room.named(config.migration, what)
    looked = room.looked_at(context, migration)
    with room.session(context, migration) as session:
        return cut_over(
            session,
            migration,
            room.guards(context, session, migration, looked),
            override=config.override,
            **_order(room, context, config),
        )


def _roll_back_op(room: _Room) -> Any:
    @_op(room, "roll_back")
    def roll_back_op(context: dg.OpExecutionContext, config: MoveConfig) -> dict:
        """Asks less than a cutover: whoever rolls back is in a hurry, and the old table has not changed its meaning."""
        with as_failure():
            migration = room.named(config.migration, "roll_back")
            with room.session(context, migration) as session:
                found = roll_back(
                    session,
                    migration,
                    [policies_alike(session, migration)],
                    override=config.override,
                    **_order(room, context, config),
                )
        return _shown(context, found)

    return roll_back_op


def _retire_op(room: _Room) -> Any:
    @_op(room, "retire_legacy")
    def retire_legacy_op(context: dg.OpExecutionContext, config: RetireConfig) -> dict:
        """Drop nothing that is not named, or that anybody reads."""
        with as_failure():
            migration = room.named(config.migration, "retire_legacy")
            writers = Writers.of(context.repository_def, migration, room.manager(context).schema_)
            with room.session(context, migration) as session:
                found = retire(
                    session,
                    migration,
                    [
                        no_backfill(context.instance, writers),
                        no_run(context.instance, writers, context.repository_def, context.run_id),
                        not_paused(context.instance, writers),
                    ],
                    drop_table=config.drop_table,
                    **_order(room, context, config),
                )
        return _shown(context, found)

    return retire_legacy_op


def _status_op(room: _Room) -> Any:
    @_op(room, "migration_status")
    def migration_status_op(context: dg.OpExecutionContext, config: StatusConfig) -> dict:
        """Look at the log and at what each view really reads."""
        with as_failure():
            wanted = (
                [room.named(config.migration, "migration_status")]
                if config.migration
                else [one for one in room.migrations.values() if one.view is not None]
            )
            schema, found = room.manager(context).audit_schema, list[Status]()
            for migration in wanted:
                with room.session(context, migration, read_only=True) as session:
                    found.append(status(session, migration, schema=schema))
                context.log.info(found[-1].told)
        lines = [dg.TableRecord({"migration": s.migration, "state": s.state, "reads": s.reads, "told": s.told}) for s in found]  # fmt: skip
        context.add_output_metadata({"migrations": dg.MetadataValue.table(lines)} if lines else {})
        return {one.migration: _plain(one) for one in found}

    return migration_status_op


def _order(
    room: _Room, context: dg.OpExecutionContext, config: MoveConfig | RetireConfig
) -> dict[str, Any]:
    return {
        "by": config.by,
        "reason": config.reason,
        "run_id": context.run_id,
        "dry_run": config.dry_run,
        "report": context.log.info,
        "schema": room.manager(context).audit_schema,
    }


def _shown(context: dg.OpExecutionContext, found: Status) -> dict[str, Any]:
    refusals = "\n".join(f"- {why}" for why in found.refusals) or "none"
    plan = "\n".join(f"- {line}" for line in found.plan) or "nothing"
    context.add_output_metadata(
        {
            "status": found.told,
            "state": found.state,
            "reads": found.reads,
            "would_be_refused": dg.MetadataValue.md(refusals),
            "would_do": dg.MetadataValue.md(plan),
        }
    )
    return _plain(found)


def _plain(found: Status) -> dict[str, Any]:
    return {**asdict(found), "since": found.since.isoformat() if found.since else None}


def _job(name: str, op: Any, about: str) -> dg.JobDefinition:
    @dg.job(
        name=name,
        description=about,
        executor_def=dg.in_process_executor,
        resource_defs={"moves_out": dg.mem_io_manager},
        tags={CONTROL: "yes", PRIORITY: "100"},
    )
    def moving() -> None:
        op()

    return moving
