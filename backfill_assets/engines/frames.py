"""Frames on their way to a warehouse, in types that have a column there."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from backfill_assets.errors import SchemaMismatch

if TYPE_CHECKING:
    import pyarrow as pa


def fitted(
    data: pa.Table,
    fit: Callable[[Any], Any],
    sql_type: Callable[[Any], str | None],
    warehouse: str,
    do: str,
) -> pa.Table:
    """Return `data` with each column as `fit` makes it, which changes no value and leaves what it cannot make.

    Raise `SchemaMismatch`, whose last part is `do`, for a column that `sql_type` knows no type for.
    """
    import pyarrow as pa

    def unfit(name: str, kind: Any, why: str) -> SchemaMismatch:
        return SchemaMismatch(
            "the rows were not written", f"column {name!r} holds {kind}, {why}", do
        )

    columns: list[Any] = []
    for name, column in zip(data.column_names, data.columns, strict=True):
        try:
            columns.append(fit(column))
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            raise unfit(name, column.type, str(error)) from error
        if sql_type(columns[-1].type) is None:
            raise unfit(name, column.type, f"which {warehouse} has no plain column for")
    return pa.table(columns, names=data.column_names)
