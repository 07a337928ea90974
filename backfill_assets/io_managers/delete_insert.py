"""Dagster at the edge: context -> slices -> compute -> rewrite -> metadata, one transaction per partition."""

from __future__ import annotations

from typing import Any

import dagster as dg
from pydantic import Field, PrivateAttr

from backfill_assets.engines import Engine, open_engine
from backfill_assets.errors import BadRows
from backfill_assets.io_managers.computing import adapted, batches
from backfill_assets.io_managers.kinds import kind_of
from backfill_assets.io_managers.loading import load as load_upstream
from backfill_assets.io_managers.partitions import Target, target_of
from backfill_assets.io_managers.reporting import Progress, as_failure, keep, stopped, tell
from backfill_assets.io_managers.run_context import run_of
from backfill_assets.io_managers.sessions import Sessions
from backfill_assets.io_managers.values import PerSlice
from backfill_assets.writing import AuditTable, Load, Run, rewrite


class DeleteInsertIOManager(dg.ConfigurableIOManager):
    """Stores each partition by replacing its slice, all or nothing, and loads partitions back.

    Assets may return a pandas DataFrame, an Arrow table, a `Select` that stays in the warehouse, or a
    `PerSlice` function. Inputs come as pandas (the default), Arrow or a `Relation`, by annotation.
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

    _engine: Engine | None = PrivateAttr(default=None)

    @property
    def engine(self) -> Engine:
        """The warehouse behind the URL; asking for it connects to nothing."""
        if self._engine is None:
            self._engine = open_engine(self.url)
        return self._engine

    def handle_output(self, context: dg.OutputContext, obj: Any) -> None:
        """Replace the run's slices by `obj`, in partition order; a failure keeps those before it."""
        if obj is None:
            raise dg.DagsterInvariantViolationError(
                "The asset returned None, so nothing was written. Annotate it '-> None' if that is right."
            )
        with as_failure():
            run = run_of(context)
            rows = adapted(obj, _named(context))
            with Sessions(self.engine, f"run {run.run_id[:8]}", context.log.info) as sessions:
                target = target_of(
                    context,
                    context.definition_metadata or {},
                    self.schema_,
                    lambda table, column: kind_of(sessions.get(), table, column, rows),
                )
                if isinstance(rows, PerSlice):
                    sessions.release()  # the asset's code runs next, and may open the warehouse itself
                self._write(context, sessions, target, rows, run)

    def _write(
        self, context: dg.OutputContext, sessions: Sessions, target: Target, rows: Any, run: Run
    ) -> None:
        audit = AuditTable(schema=self.audit_schema)
        done: list[Load] = []
        progress = Progress(context.log.info, len(target.slices))
        try:
            for batch in batches(target.slices, rows, run):
                for computed in batch:
                    session = sessions.get()
                    if done:
                        session.breathe()
                    done.append(
                        rewrite(session, computed.slice, computed.rows, computed.run, audit)
                    )
                    progress.after(done)
                sessions.release()  # for the same reason
        except BaseException as error:  # a run that is terminated keeps its days too
            if len(target.slices) == 1 or (not done and isinstance(error, BadRows)):
                raise  # the sentence says it all, and for a stray row that no day was begun
            keep(context, target, done, self.engine.spelling)
            if not isinstance(error, Exception):
                raise
            raise stopped(target, len(done), error) from error
        tell(context, target, done, self.engine.spelling)

    def load_input(self, context: dg.InputContext) -> Any:
        """Return the upstream partitions: pandas by default, Arrow or a `Relation` where annotated so."""
        with (
            as_failure(),
            Sessions(self.engine, "a reader", context.log.info, read_only=True) as sessions,
        ):
            return load_upstream(context, sessions, self.engine.spelling, self.schema_)


def _named(context: dg.OutputContext) -> str:
    return context.asset_key.to_user_string() if context.has_asset_key else context.name
