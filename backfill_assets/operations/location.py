"""Finding an asset of the code location by what a person calls it, and the slices of its partitions."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any

import dagster as dg

from backfill_assets.controls.tables import same_table
from backfill_assets.errors import DeclarationError
from backfill_assets.io_managers.declaration import plain
from backfill_assets.io_managers.partitions import schema_of

_HOW = "Write it as schema.table or as the asset's key"


def asset_named(
    repository: Any,
    name: str,
    what: str,
    is_wanted: Callable[[dg.AssetsDefinition], bool] = lambda _: True,
) -> tuple[dg.AssetKey, dg.AssetsDefinition]:
    """Return the asset with that key, or that writes that table; `DeclarationError` says that `what` and why.

    A name with dots is looked for among the tables first: one asset's key may be another one's table.
    """
    wanted = same_table(name)
    if not wanted.strip("."):
        raise DeclarationError(what, "no name is given", _HOW)
    found = [(key, asset) for key, asset in repository.assets_defs_by_key.items()]
    for names_of in (_keys, table_names) if "/" in name else (table_names, _keys):
        for key, asset in found:
            names = {same_table(one) for one in names_of(key, asset)}
            if wanted in names and is_wanted(asset):
                return key, asset
    raise DeclarationError(
        what, "no asset of this location has that key or writes that table", _HOW
    )


def table_names(key: dg.AssetKey, asset: dg.AssetsDefinition) -> list[str]:
    """Return the table that the asset's IO manager writes, with its schema, and with its database where one is given."""
    metadata, path = asset.metadata_by_key.get(key, {}), list(key.path)
    table = str(plain(metadata.get("table")) or path[-1])
    name = f"{schema_of(metadata, _configured_schema(key, asset), path)}.{table}"
    database = plain(metadata.get("database"))
    return [name, *([f"{database}.{name}"] if database else [])]


def _keys(key: dg.AssetKey, _: dg.AssetsDefinition) -> list[str]:
    return [key.to_user_string()]


def _configured_schema(key: dg.AssetKey, asset: dg.AssetsDefinition) -> str | None:
    """Return the schema that the asset's IO manager is configured with, without making one: that may ask for a URL."""
    if key not in asset.keys:
        return None
    resource: Any = asset.resource_defs.get(asset.get_io_manager_key_for_asset_key(key))
    field = resource.config_schema.as_field() if resource is not None else None
    given: Any = field.default_value if field is not None and field.default_provided else None
    schema = given.get("schema") if isinstance(given, Mapping) else None
    if isinstance(schema, Mapping):
        return os.environ.get(str(schema.get("env")))
    return schema
