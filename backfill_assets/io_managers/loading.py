"""Upstream partitions as an input: a frame, or a `Relation` that stays in the warehouse."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import dagster as dg

from backfill_assets.engines import Spelling
from backfill_assets.engines.sql import listed, predicate, qualified
from backfill_assets.errors import DeclarationError, MissingTable
from backfill_assets.io_managers.frames import is_arrow, is_pandas
from backfill_assets.io_managers.kinds import kind_of
from backfill_assets.io_managers.partitions import Target, target_of
from backfill_assets.io_managers.sessions import Sessions
from backfill_assets.io_managers.values import Relation
from backfill_assets.slice import joined


def load(
    context: dg.InputContext, sessions: Sessions, spelling: Spelling, schema: str | None
) -> Any:
    """Return the input in the type that it is annotated with; pandas where it is not."""
    wanted: Any = context.dagster_type.typing_type
    if not (wanted is Any or wanted is Relation or is_pandas(wanted) or is_arrow(wanted)):
        raise DeclarationError(
            f"the input {context.name!r} cannot be loaded as {wanted!r}",
            "only pandas.DataFrame, pyarrow.Table and Relation are known",
            "Annotate it with one of them",
        )
    with _upstream_first(context.name):
        target = _target(context, sessions, schema)
        sql = _query(context, target, spelling)
        if wanted is Relation:
            return Relation(sql)
        try:
            table = sessions.get().fetch_arrow(sql)
        except MissingTable:
            if target.slices:
                raise
            return _nothing(wanted)  # nothing was asked for, and nothing was ever loaded
    return table if is_arrow(wanted) else table.to_pandas()


@contextlib.contextmanager
def _upstream_first(name: str) -> Iterator[None]:
    """Say of a table that is not there yet what to do about it."""
    try:
        yield
    except MissingTable as error:
        raise MissingTable(
            f"the input {name!r} could not be read",
            error.why,
            "Materialize the upstream asset first",
        ) from error


def _target(context: dg.InputContext, sessions: Sessions, schema: str | None) -> Target:
    upstream = context.upstream_output
    return target_of(
        context,
        (upstream.definition_metadata if upstream is not None else None) or {},
        schema,
        lambda table, column: kind_of(sessions.get(), table, column, None),
    )


def _query(context: dg.InputContext, target: Target, spelling: Spelling) -> str:
    columns: list[str] | None = (context.definition_metadata or {}).get("columns")
    conditions = [f"({predicate(spelling, slice_)})" for slice_ in joined(target.slices)]
    return (
        f"SELECT {listed(spelling, columns) if columns else '*'}"
        f" FROM {qualified(spelling, target.table)} WHERE {' OR '.join(conditions) or '1 = 0'}"
    )


def _nothing(wanted: Any) -> Any:
    if is_arrow(wanted):
        import pyarrow as pa

        return pa.table({})
    import pandas as pd

    return pd.DataFrame()
