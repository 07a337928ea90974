"""A `Table` in an asset's metadata and back: the stock IO managers' keys, and ours beside them.

`schema`, `columns` and `partition_expr` mean what they mean to the stock managers, except that
`partition_expr` names a column and is not SQL. Ours: `table`, `database`, `partition_kind`, `time_zone`,
`unique_key`, `on_schema_change`, `allow_empty`, `max_shrink`, `shrink_floor`, `column_types`, `source_days`, `source_mutable`,
`source_history`, `source`, `expects`, `duplicate_keys`, `closed`, `hours`, `late_rows`. `written_by` is for an asset that
returns nothing, and whose slices something else writes with the audit of the IO manager's warehouse, as dbt does.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, Literal, cast

from backfill_assets.controls.breaker import failures_before_pause
from backfill_assets.controls.budget import Budget
from backfill_assets.errors import DeclarationError
from backfill_assets.expectations import as_plain
from backfill_assets.table import SliceColumn, SliceKind, Table

WRITTEN_BY = "written_by"

# what a table is declared with under the same name in an asset's metadata
_OPTIONS = (
    "unique_key",
    "on_schema_change",
    "allow_empty",
    "max_shrink",
    "shrink_floor",
    "database",
    "source_days",
    "source_mutable",
    "source_history",
    "source",
    "expects",
    "duplicate_keys",
    "closed",
    "hours",
)


_KNOWN = (
    *_OPTIONS,
    "table",
    "schema",
    "columns",
    "column_types",
    "partition_expr",
    "partition_kind",
    "time_zone",
    "budget",
    "on_failure",
    "late_rows",
    WRITTEN_BY,
)
_LATE_ROWS = ("report", "backfill")


def table_metadata(
    table: Table, partition_expr: str | Mapping[str, str] | None = None
) -> dict[str, Any]:
    """Return asset metadata that declares `table`.

    A multi-partitioned asset needs `partition_expr`, which maps each of its dimensions to a column.
    """
    found: dict[str, Any] = {
        "table": table.name,
        "unique_key": list(table.unique_key),
        "on_schema_change": table.on_schema_change,
        "allow_empty": table.allow_empty
        if isinstance(table.allow_empty, bool)
        else sorted(day.isoformat() for day in table.allow_empty),
        "max_shrink": table.max_shrink,
        "shrink_floor": table.shrink_floor,
    }
    if table.source_days is not None:
        found["source_days"] = table.source_days
    if table.source_mutable:
        found["source_mutable"] = True
    if table.source_history is not None:
        found["source_history"] = table.source_history
    if table.source is not None:
        found["source"] = asdict(table.source)
    if table.expects:
        found["expects"] = [as_plain(rule) for rule in table.expects]
    if table.duplicate_keys != "block":
        found["duplicate_keys"] = table.duplicate_keys
    if table.closed:
        found["closed"] = list(table.closed)
    if table.hours is not None:
        found["hours"] = list(table.hours)
    if table.schema:
        found["schema"] = table.schema
    if table.database:
        found["database"] = table.database
    if table.columns is not None:
        found["column_types"] = dict(table.columns)
    if table.slice_column is not None:
        column = table.slice_column
        found |= {
            "partition_expr": column.name,
            "partition_kind": column.kind,
            "time_zone": column.zone,
        }
    if partition_expr is not None:
        found["partition_expr"] = partition_expr
    return found


def declared_table(
    metadata: Mapping[str, Any],
    *,
    name: str,
    schema: str,
    slice_column: SliceColumn | None,
    dimensions: tuple[str, ...],
) -> Table:
    """Return the table that an asset's metadata declares; `DeclarationError` says what is wrong with it."""
    _refuse_misspelled(metadata, name)
    late_rows_of(metadata, name)
    # asked for in a backfill's course, or at its first failure: what is wrong with them is told now
    Budget.of(plain(metadata.get("budget")) or {})
    failures_before_pause(plain(metadata.get("on_failure", "pause")))
    options: dict[str, Any] = {key: plain(metadata[key]) for key in _OPTIONS if key in metadata}
    return Table(
        name=str(plain(metadata.get("table", name))),
        schema=schema,
        slice_column=slice_column,
        dimensions=dimensions,
        columns=plain(metadata.get("column_types")),
        **options,
    )


def late_rows_of(metadata: Mapping[str, Any], asset: str) -> Literal["report", "backfill"] | None:
    """Return what the sensor `late_rows` is to do for an asset; None where it is to leave it alone."""
    given = plain(metadata.get("late_rows"))
    if given is not None and given not in _LATE_ROWS:
        raise DeclarationError(
            f"asset {asset} cannot be looked through for late rows",
            f"its metadata late_rows is {given!r}",
            "Give 'report' or 'backfill', or leave it out",
        )
    return cast('Literal["report", "backfill"] | None', given)


def _refuse_misspelled(metadata: Mapping[str, Any], asset: str) -> None:
    """Raise for a key that is nearly one of ours: it would be left out, and a guard with it."""
    for key in metadata:
        like = _like(key) if key not in _KNOWN else None
        if like is not None:
            raise DeclarationError(
                f"asset {asset} cannot be written",
                f"its metadata has {key!r}, which means nothing here and is nearly {like!r}",
                f"Write {like}, or give that metadata a name that is less alike",
            )


def _like(key: str) -> str | None:
    """Return the key of ours that `key` nearly is: by most of its letters, by letters swapped, or by a wrong one."""
    if near := difflib.get_close_matches(key, _KNOWN, 1, 0.85):
        return near[0]
    for known in _KNOWN:
        if len(key) == len(known) >= 5:
            differing = sum(a != b for a, b in zip(key, known, strict=True))
            if differing == 1 or sorted(key) == sorted(known):
                return known
    return None


def columns_by_dimension(
    metadata: Mapping[str, Any], names: list[str] | None, asset: str
) -> dict[str, str]:
    """Return the column of each partition dimension; a plain partitioning has one, named `""`."""
    given = plain(metadata.get("partition_expr"))
    if given is None:
        _refuse_misspelled(metadata, asset)
        raise DeclarationError(
            f"asset {asset} cannot be written by partition",
            "it declares no column that says to which partition a row belongs, so a second run would not know what to delete",
            'Add metadata={"partition_expr": "the_column"}',
        )
    if names is None:
        if not isinstance(given, str):
            raise _wrong_expr(asset, given, "one column name")
        return {"": column_name(given)}
    if not isinstance(given, Mapping) or set(cast("Mapping[str, str]", given)) != set(names):
        raise _wrong_expr(asset, given, f"a column for each of the dimensions {', '.join(names)}")
    return {
        name: column_name(str(column)) for name, column in cast("Mapping[str, str]", given).items()
    }


def kind_given(metadata: Mapping[str, Any]) -> SliceKind | None:
    """Return the declared kind of the slice column, None when it is to be found out from its type."""
    return plain(metadata.get("partition_kind"))


def column_name(given: str) -> str:
    """Return the column that a `partition_expr` names; quotes around the whole of it are taken off."""
    if len(given) > 2 and given[0] == given[-1] == '"':
        return given[1:-1].replace('""', '"')
    return given


def plain(value: Any) -> Any:
    """Return the value inside a Dagster `MetadataValue`, or the value itself."""
    return getattr(value, "value", value)


def _wrong_expr(asset: str, given: object, wanted: str) -> DeclarationError:
    return DeclarationError(
        f"asset {asset} cannot be written by partition",
        f"its partition_expr is {given!r} and should be {wanted}",
        "Correct the metadata",
    )
