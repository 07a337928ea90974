"""From a Dagster context to slices: the one place where partition keys become windows and dimension values."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import dagster as dg
from dagster import DagsterInvariantViolationError

from backfill_assets.controls.lanes import PARTITION, RANGE
from backfill_assets.errors import DeclarationError, SchemaMismatch
from backfill_assets.io_managers.declaration import (
    columns_by_dimension,
    declared_table,
    kind_given,
    plain,
)
from backfill_assets.partition_keys import is_dynamic
from backfill_assets.slice import Slice
from backfill_assets.table import SliceColumn, SliceKind, Table
from backfill_assets.window import Window
from backfill_assets.writing.fit import FAMILY_OF

Context = dg.OutputContext | dg.InputContext
KindOf = Callable[[Table, str], SliceKind]


@dataclass(frozen=True)
class Target:
    """The table of an asset (or op output) and the slices of it that a run is about, in partition order."""

    table: Table
    slices: list[Slice]
    partitioned: bool
    asset: str | None = None


def target_of(
    context: Context, metadata: Mapping[str, Any], schema: str | None, kind_of: KindOf
) -> Target:
    """Return what `context` is about; `kind_of` finds the slice column's kind when the metadata leaves it out."""
    if not context.has_asset_key:
        name = str(plain(metadata.get("table", getattr(context, "name", ""))))
        table = declared_table(
            metadata,
            name=name,
            schema=schema_of(metadata, schema, []),
            slice_column=None,
            dimensions=(),
        )
        return Target(table, [Slice(table)], partitioned=False)
    path = list(context.asset_key.path)
    where = {"name": path[-1], "schema": schema_of(metadata, schema, path)}
    if not context.has_asset_partitions:
        _refuse_whole(context)
        table = declared_table(metadata, **where, slice_column=None, dimensions=())
        return Target(table, [Slice(table)], False, context.asset_key.to_user_string())
    return _partitioned(context, metadata, where, kind_of)


def _refuse_whole(context: Context) -> None:
    """Raise when a run of a partitioned asset names no partition: it would replace all of the table by one of them."""
    if not isinstance(context, dg.OutputContext):
        return
    try:
        layer = context.step_context.job_def.asset_layer
    except DagsterInvariantViolationError:  # a context built by hand
        return
    key = context.asset_key
    if layer.asset_graph.has(key) and layer.asset_graph.get(key).partitions_def is not None:
        raise DeclarationError(
            f"asset {key.to_user_string()} was left as it was",
            "it has partitions and the run names none, so the whole table would have been replaced",
            "Launch a partition or a range of them (from a terminal: the tag dagster/partition)",
        )


def _partitioned(
    context: Context, metadata: Mapping[str, Any], where: Mapping[str, str], kind_of: KindOf
) -> Target:
    asset, definition = context.asset_key.to_user_string(), context.asset_partitions_def
    keys = _existing_keys(context, definition, asset)
    if not keys and isinstance(context, dg.InputContext):
        # nothing lies upstream of the first partition: a true answer for an input, and none for an output
        return Target(declared_table(metadata, **where, slice_column=None, dimensions=()), [], True)
    return target_over(asset, definition, keys, metadata, where, kind_of)


def target_over(
    asset: str,
    definition: Any,
    keys: Sequence[str],
    metadata: Mapping[str, Any],
    where: Mapping[str, str],
    kind_of: KindOf,
) -> Target:
    """Return the slices of `keys` of a partitioned asset; `where` gives `name` and `schema` of its table."""
    parts = (
        {dimension.name: dimension.partitions_def for dimension in definition.partitions_defs}
        if isinstance(definition, dg.MultiPartitionsDefinition)
        else {"": definition}
    )
    columns = columns_by_dimension(metadata, None if "" in parts else list(parts), asset)
    timed = [
        name for name, part in parts.items() if isinstance(part, dg.TimeWindowPartitionsDefinition)
    ]
    if len(timed) > 1:
        raise DeclarationError(
            f"asset {asset} cannot be written by partition",
            f"it has two time dimensions, {' and '.join(timed)}",
            "Keep one of them as the slice column and make the other an ordinary column",
        )
    dimensions = tuple(columns[name] for name in parts if name not in timed)
    table = declared_table(metadata, **where, slice_column=None, dimensions=dimensions)
    if timed:
        zone = str(plain(metadata.get("time_zone")) or parts[timed[0]].timezone)  # pyright: ignore[reportAttributeAccessIssue]
        kind = kind_given(metadata) or kind_of(table, columns[timed[0]])
        column = SliceColumn(columns[timed[0]], kind, zone)
        table = declared_table(metadata, **where, slice_column=column, dimensions=dimensions)
    if isinstance(definition, dg.MultiPartitionsDefinition):
        keys = [definition.get_partition_key_from_str(str(key)) for key in keys]
    slices: list[Slice] = []
    for key in keys:
        values: Mapping[str, str] = getattr(key, "keys_by_dimension", {"": key})
        window = None
        if timed:
            part: Any = parts[timed[0]]
            window = Window.of(part.time_window_for_partition_key(values[timed[0]]))
        fixed = tuple((columns[name], values[name]) for name in parts if name not in timed)
        slices.append(Slice(table, window, fixed, partition=str(key)))
    return Target(table, slices, True, asset)


def _existing_keys(context: Context, definition: Any, asset: str) -> Sequence[str]:
    """Return the run's partition keys; a launched job does not check that they exist, so we do."""
    try:
        keys = list(context.asset_partition_keys)
    except Exception as error:
        raise _no_partition(asset, "the run's partition", str(error)) from error
    for key in () if is_dynamic(definition) else {*keys[:1], *keys[-1:]}:
        if not definition.has_partition_key(key):
            raise _no_partition(
                asset, f"the partition {key!r}", "it lies outside the asset's partitions"
            )
    if not keys and isinstance(context, dg.OutputContext):
        raise _no_partition(asset, _asked_for(context), "no partition of the asset answers to it")
    return keys


def _asked_for(context: Context) -> str:
    """Return the partition or range as the run's tags give it."""
    step = context.step_context if isinstance(context, dg.OutputContext) else None
    tags = step.dagster_run.tags if step is not None else {}
    start, end = (tags.get(edge) for edge in RANGE)
    return f"the partitions {start}...{end}" if start else f"the partition {tags.get(PARTITION)!r}"


def _no_partition(asset: str, what: str, why: str) -> DeclarationError:
    return DeclarationError(
        f"{what} of asset {asset} cannot be written",
        f"it does not exist ({why})",
        "Launch a partition that the asset's page lists",
    )


def kind_by_family(column: str, family: str, actual: str) -> SliceKind:
    """Return the kind of a slice column whose SQL type is of `family`; refuse what cannot be compared."""
    kinds: dict[str, SliceKind] = {of: kind for kind, of in FAMILY_OF.items()}
    if family not in kinds:
        raise SchemaMismatch(
            f"column {column!r} cannot cut the table into slices",
            f"it holds {actual}, which cannot be compared safely with a window",
            f"Use a column of {', '.join(kinds)}",
        )
    return kinds[family]


def schema_of(metadata: Mapping[str, Any], configured: str | None, path: list[str]) -> str:
    """Return the schema as the stock managers choose it: metadata, then configuration, then key prefix."""
    if plain(metadata.get("schema")):
        return str(plain(metadata["schema"]))
    return configured or (path[-2] if len(path) > 1 else "public")
