"""dbt's models as assets that declare their tables the way every other asset here does, tests as checks by partition."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import dagster as dg
from dagster_dbt import DagsterDbtTranslator

from backfill_assets.io_managers.declaration import WRITTEN_BY, table_metadata
from backfill_assets.table import HISTORIES, SliceColumn, Table

SLICES = "backfill_slices"
# of a model's meta: no matter of the table, and asked by Dagster alone
_OF_DAGSTER = ("late_rows", "budget", "on_failure")


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
        return spec.merge_attributes(metadata=metadata_of(manifest, unique_id, node))

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


def table_of(manifest: Mapping[str, Any], unique_id: str, node: Mapping[str, Any]) -> Table:
    """Return the table that a model of `backfill_slices` declares in its config and by what it reads."""
    config: Mapping[str, Any] = node["config"]
    is_mutable, days = changed_in_place(manifest, unique_id)
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
        duplicate_keys=config.get("duplicate_keys", "block"),
        source_history=config.get("source_history"),
        source_mutable=is_mutable,
        source_days=days,
        source=config.get("source"),
    )


def metadata_of(
    manifest: Mapping[str, Any], unique_id: str, node: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the table of a model as the metadata of its asset, and what dbt's `meta` says to Dagster alone."""
    table, meta = table_of(manifest, unique_id, node), _meta(node)
    told = {name: meta[name] for name in _OF_DAGSTER if name in meta}
    return {
        **table_metadata(table),
        "schema": table.schema,
        "table": table.name,
        WRITTEN_BY: "dbt",
        **told,
    }


def changed_in_place(manifest: Mapping[str, Any], unique_id: str) -> tuple[bool, int | None]:
    """Return whether a model reads today's state of a source that is changed in place, and for how many days it may.

    As `backfill_changing_sources` of the macros: through models and views, but not through what keeps old states.
    """
    nodes, sources = manifest["nodes"], manifest["sources"]
    if nodes[unique_id]["config"].get("source_history") in HISTORIES:
        return False, None
    left, seen = list(_parents(nodes[unique_id])), set[str]()
    days: list[int | None] = []
    while left:
        name = left.pop()
        if name in seen:
            continue
        seen.add(name)
        node = nodes.get(name) or sources.get(name) or {}
        if (
            _meta(node).get("source_history") in HISTORIES
            or node.get("resource_type") == "snapshot"
        ):
            continue
        if name in sources and _meta(node).get("source_mutable"):
            days.append(_meta(node).get("source_days"))
        left += _parents(node)
    # one that is trusted for no day decides for all of them
    known = [int(given) for given in days if given is not None]
    return bool(days), min(known) if days and len(known) == len(days) else None


def _parents(node: Mapping[str, Any]) -> Sequence[str]:
    return (node.get("depends_on") or {}).get("nodes") or ()


def _meta(node: Mapping[str, Any]) -> Mapping[str, Any]:
    return {**(node.get("meta") or {}), **((node.get("config") or {}).get("meta") or {})}
