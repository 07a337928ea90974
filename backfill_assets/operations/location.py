"""Finding an asset of the code location by what a person calls it, and the slices of its partitions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import dagster as dg

from backfill_assets.controls.tables import same_table
from backfill_assets.errors import DeclarationError


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
