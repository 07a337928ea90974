"""dbt's models as assets that declare their tables the way every other asset here does, tests as checks by partition."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import dagster as dg
from dagster_dbt import DagsterDbtTranslator

from backfill_assets.io_managers.declaration import table_metadata
from backfill_assets.table import SliceColumn, Table

SLICES = "backfill_slices"


class SlicesTranslator(DagsterDbtTranslator):
    """Gives a model of `backfill_slices` its table's metadata, and its tests the model's partitions."""

    def __init__(self, partitions: dg.PartitionsDefinition[str] | None = None) -> None:
        super().__init__()
        self._partitions = partitions

    def get_asset_spec(
        self, manifest: Mapping[str, Any], unique_id: str, project: Any
    ) -> dg.AssetSpec:
        """Return the model's asset; what it is declared with in dbt is its metadata here."""
        spec = super().get_asset_spec(manifest, unique_id, project)
        node = self.get_resource_props(manifest, unique_id)
        if (node.get("config") or {}).get("materialized") != SLICES:
            return spec
        return spec.merge_attributes(metadata=metadata_of(node))

    def get_asset_check_spec(
        self,
        asset_spec: dg.AssetSpec,
        manifest: Mapping[str, Any],
        unique_id: str,
        project: Any,
    ) -> dg.AssetCheckSpec | None:
        """Return the test's check, with a result for each partition."""
        spec = super().get_asset_check_spec(asset_spec, manifest, unique_id, project)
        if spec is None or self._partitions is None:
            return spec
        return spec._replace(partitions_def=self._partitions)


def table_of(node: Mapping[str, Any]) -> Table:
    """Return the table that a model of `backfill_slices` declares in its config."""
    config: Mapping[str, Any] = node["config"]
    keys = config.get("unique_key") or ()
    empty = config.get("allow_empty", False)
    return Table(
        name=str(node.get("alias") or node["name"]),
        schema=str(node["schema"]),
        slice_column=SliceColumn(
            config["slice_column"], config.get("slice_kind", "date"), config.get("time_zone", "UTC")
        ),
        unique_key=(keys,) if isinstance(keys, str) else tuple(keys),
        on_schema_change=config.get("schema_policy", "fail"),
        allow_empty=empty if isinstance(empty, bool) else frozenset(empty),
        max_shrink=config.get("max_shrink", 0.5),
        shrink_floor=config.get("shrink_floor", 100),
        source_history=config.get("source_history")
        or (config.get("meta") or {}).get("source_history"),
    )


def metadata_of(node: Mapping[str, Any]) -> dict[str, Any]:
    """Return the table of a model as the metadata of its asset."""
    table = table_of(node)
    return {**table_metadata(table), "schema": table.schema, "table": table.name}
