"""Finding an asset of the code location by what a person calls it, and the slices of its partitions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import dagster as dg

from backfill_assets.controls.switch import same_table
from backfill_assets.errors import DeclarationError
from backfill_assets.io_managers.declaration import declared_table
from backfill_assets.io_managers.delete_insert import DeleteInsertIOManager
from backfill_assets.io_managers.partitions import KindOf, Target, schema_of, target_over
from backfill_assets.slice import Slice


def asset_named(
    repository: Any,
    name: str,
    what: str,
    is_wanted: Callable[[dg.AssetsDefinition], bool] = lambda _: True,
) -> tuple[dg.AssetKey, dg.AssetsDefinition]:
    """Return the asset with that key, or that writes that table; `DeclarationError` says that `what` and why."""
    wanted = same_table(name)
    for key, asset in repository.assets_defs_by_key.items():
        metadata = asset.metadata_by_key.get(key, {})
        parts = [str(metadata[part]) for part in ("schema", "table") if metadata.get(part)]
        names = {same_table(key.to_user_string()), same_table(".".join(parts))}
        if wanted in names and is_wanted(asset):
            return key, asset
    raise DeclarationError(
        what,
        "no asset of this location has that key or writes that table",
        "Write it as schema.table or as the asset's key",
    )


def target_in(
    manager: DeleteInsertIOManager,
    key: dg.AssetKey,
    asset: dg.AssetsDefinition,
    keys: Sequence[str],
    kind: KindOf,
) -> Target:
    """Return the table of an asset that `manager` writes, and the slices of its partitions `keys`."""
    metadata, path = asset.metadata_by_key.get(key, {}), list(key.path)
    where = {"name": path[-1], "schema": schema_of(metadata, manager.schema_, path)}
    definition: Any = asset.partitions_def
    if definition is None:
        table = declared_table(metadata, **where, slice_column=None, dimensions=())
        return Target(table, [Slice(table)], False, key.to_user_string())
    parts = (
        [definition.get_partition_key_from_str(name) for name in keys]
        if isinstance(definition, dg.MultiPartitionsDefinition)
        else keys
    )
    return target_over(key.to_user_string(), definition, parts, metadata, where, kind)
