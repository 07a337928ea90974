"""Which partitions of an asset a person means by a first and a last one, and the slices that they are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import dagster as dg

from backfill_assets.errors import DeclarationError
from backfill_assets.io_managers.declaration import declared_table
from backfill_assets.io_managers.delete_insert import DeleteInsertIOManager
from backfill_assets.io_managers.partitions import KindOf, Target, schema_of, target_over
from backfill_assets.partition_keys import time_dimension
from backfill_assets.slice import Slice


def keys_between(
    definition: Any, first: str | None, last: str | None, what: str, instance: Any = None
) -> list[str]:
    """Return the partitions from `first` to `last`, both included, or to the end where one is None.

    `what` begins the sentence that is raised where there is none. Of two dimensions the one that is time is meant.
    """
    keys = list(definition.get_partition_keys(dynamic_partitions_store=instance))
    multi = isinstance(definition, dg.MultiPartitionsDefinition)
    dimension = _time_of(definition, what) if multi and (first or last) else None
    there = dimension.partitions_def.get_partition_keys() if dimension is not None else keys
    for name in (first, last):
        if name is not None and name not in there:
            raise DeclarationError(
                what,
                f"there is no partition {name!r}",
                "Give partitions that the asset's page lists",
            )
    begin = 0 if first is None else list(there).index(first)
    end = len(there) if last is None else list(there).index(last) + 1
    if dimension is not None:
        wanted = set(there[begin:end])
        found = [key for key in keys if key.keys_by_dimension[dimension.name] in wanted]
    else:
        found = keys[begin:end]
    if not found and (first is not None or last is not None):
        raise DeclarationError(
            what, "its first partition comes after its last", "Give them the other way round"
        )
    return found


def target_for(
    manager: DeleteInsertIOManager,
    key: dg.AssetKey,
    asset: dg.AssetsDefinition,
    keys: Sequence[str],
    kind: KindOf,
) -> Target:
    """Return the table of an asset and the slices of `keys` (or the whole), as the IO manager writes them."""
    metadata, path = asset.metadata_by_key.get(key, {}), list(key.path)
    definition: Any = partitions_of_asset(asset, key)
    where = {"name": path[-1], "schema": schema_of(metadata, manager.schema_, path)}
    if definition is None:
        table = declared_table(metadata, **where, slice_column=None, dimensions=())
        return Target(table, [Slice(table)], False, key.to_user_string())
    return target_over(key.to_user_string(), definition, keys, metadata, where, kind)


def partitions_of_asset(asset: dg.AssetsDefinition, key: dg.AssetKey) -> Any:
    """Return the partitions of one asset of a definition that may make several; None without any."""
    return asset.specs_by_key[key].partitions_def


def _time_of(definition: dg.MultiPartitionsDefinition, what: str) -> Any:
    dimension = time_dimension(definition)
    if dimension is not None:
        return dimension
    raise DeclarationError(what, "neither of its dimensions is time", "Name one that has days")
