"""Dagster at the edge: context -> slices -> compute -> rewrite -> metadata, one transaction per partition."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

import dagster as dg
from pydantic import Field, PrivateAttr

from backfill_assets.engines import Engine, Session, open_engine
from backfill_assets.errors import DeclarationError
from backfill_assets.io_managers.frames import arrow_of, is_arrow, is_pandas
from backfill_assets.io_managers.kinds import kind_of
from backfill_assets.io_managers.loading import load
from backfill_assets.io_managers.partitions import Target, target_of
from backfill_assets.io_managers.reporting import as_failure, keep, stopped, tell
from backfill_assets.io_managers.run_context import run_of
from backfill_assets.io_managers.sessions import Sessions
from backfill_assets.io_managers.values import PerSlice
from backfill_assets.slice import Slice
from backfill_assets.writing import AuditTable, Load, Run, Select, rewrite
from backfill_assets.writing.arrow import cut

if TYPE_CHECKING:
    import pyarrow as pa

    Rows = pa.Table | Select
    Computed = tuple[Slice, Callable[[], Rows]]


class DeleteInsertIOManager(dg.ConfigurableIOManager):
    """Stores each partition by replacing its slice, all or nothing, and loads partitions back.

    Assets may return a pandas DataFrame, an Arrow table, a `Select` that stays in the warehouse, or a
    `PerSlice` function. Inputs come as pandas (the default), Arrow or a `Relation`, by annotation.
    """

    url: str = Field(description="The warehouse: duckdb:///warehouse.duckdb, postgresql://user@host/db ...")
    schema_: str | None = Field(
        default=None,
        alias="schema",
        description="The schema of assets whose metadata names none; without it, their key prefix.",
    )
    audit_schema: str = Field(default="backfill", description="The schema of the audit table load_audit.")

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
            rows = _adapted(obj, context.name)
            with Sessions(self.engine, f"run {run.run_id[:8]}", context.log.info) as sessions:
                target = target_of(
                    context,
                    context.definition_metadata or {},
                    self.schema_,
                    lambda table, column: kind_of(sessions.get(), table, column, rows),
                )
                self._write(context, sessions, target, rows, run)

    def _write(self, context: dg.OutputContext, sessions: Sessions, target: Target, rows: Any, run: Run) -> None:
        audit, done, number = AuditTable(schema=self.audit_schema), list[Load](), 0
        work = list(_each(target, rows))  # a frame with a stray row is refused here, before anything is written
        try:
            for number, (slice_, compute) in enumerate(work):
                session = _turn(sessions, number, rows)
                if session is None:  # the asset computes each slice itself, and may open the warehouse for it
                    run = dataclasses.replace(run, source_read_at=datetime.now(timezone.utc))
                computed = compute()
                done.append(written := rewrite(session or sessions.get(), slice_, computed, run, audit))
                context.log.info(
                    f"{slice_.label}: {written.rows_before} rows replaced by {written.rows_after}"
                    f" in {written.seconds:.2f} s."
                )
        except Exception as error:
            if len(target.slices) == 1:
                raise
            keep(context, target, done, self.engine.spelling)
            raise stopped(target, number, error) from error
        tell(context, target, done, self.engine.spelling)

    def load_input(self, context: dg.InputContext) -> Any:
        """Return the upstream partitions: pandas by default, Arrow or a `Relation` where annotated so."""
        with as_failure(), Sessions(self.engine, "a reader", context.log.info, read_only=True) as sessions:
            return load(context, sessions, self.engine.spelling, self.schema_)


def _turn(sessions: Sessions, number: int, rows: Any) -> Session | None:
    """Return the session for the next slice, others let in between; None while the asset is to compute."""
    if isinstance(rows, PerSlice):
        sessions.release()
        return None
    session = sessions.get()
    if number:
        session.breathe()
    return session


def _each(target: Target, rows: Any) -> Iterator[Computed]:
    """Yield each slice with how to get its rows; a frame of many days is cut before the first is written."""
    if isinstance(rows, PerSlice):
        for slice_ in target.slices:
            yield slice_, lambda s=slice_: _adapted(rows.compute(s), s.label)
    elif isinstance(rows, Select) or len(target.slices) == 1:
        for slice_ in target.slices:
            yield slice_, lambda: rows
    else:
        for slice_, part in zip(target.slices, cut(rows, target.slices), strict=True):
            yield slice_, lambda p=part: p


def _adapted(obj: Any, label: str) -> Any:
    """Return what an asset returned in the form that the write path takes."""
    if isinstance(obj, (Select, PerSlice)) or is_arrow(type(obj)):
        return obj
    if is_pandas(type(obj)):
        return arrow_of(obj, label)
    raise DeclarationError(
        f"{label} cannot be written",
        f"the asset returned a {type(obj).__module__}.{type(obj).__qualname__}",
        "Return a pandas.DataFrame, a pyarrow.Table, a Select or a PerSlice",
    )
