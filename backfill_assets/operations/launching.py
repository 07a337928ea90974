"""A Dagster backfill over exactly the partitions that are asked for, requested as the UI's own dialog does.

The daemon takes it up: it cuts runs by each asset's backfill policy, and they pass the queue and its lanes.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import dagster as dg
from dagster._core.definitions.assets.graph.asset_graph_subset import AssetGraphSubset
from dagster._core.execution.backfill import (
    BulkActionsFilter,
    BulkActionStatus,
    PartitionBackfill,
)
from dagster._core.utils import make_new_backfill_id
from dagster._time import get_current_timestamp

from backfill_assets.controls.switch import ASSET
from backfill_assets.io_managers.declaration import plain
from backfill_assets.partition_keys import is_dynamic

# on the switch's asset, which every such location has: the options by which `dagster job launch` finds its jobs
LAUNCH_WITH = "launch_with"
ONE_LOCATION = "-w workspace.yaml"

# the partitions of each asset, None for an asset without any
Wanted = Mapping[dg.AssetKey, "Sequence[str] | None"]

_GOING = [BulkActionStatus.REQUESTED, BulkActionStatus.CANCELING, BulkActionStatus.FAILING]


def request_backfill(
    instance: dg.DagsterInstance,
    asset_graph: Any,
    wanted: Wanted,
    tags: Mapping[str, str],
    *,
    title: str | None = None,
    description: str | None = None,
    run_config: Mapping[str, Any] | None = None,
) -> str:
    """Request a backfill of `wanted` and return its id; the partitions have to be there."""
    subsets = {
        key: asset_graph.get(key).partitions_def.subset_with_partition_keys(list(names))
        for key, names in wanted.items()
        if names
    }
    backfill = PartitionBackfill.from_asset_graph_subset(
        backfill_id=make_new_backfill_id(),
        backfill_timestamp=get_current_timestamp(),
        tags=dict(tags),
        dynamic_partitions_store=instance,
        asset_graph_subset=AssetGraphSubset(
            partitions_subsets_by_asset_key=subsets,
            non_partitioned_asset_keys={key for key, names in wanted.items() if names is None},
        ),
        title=title,
        description=description,
        run_config=run_config,
    )
    instance.add_backfill(backfill)
    return backfill.backfill_id


def going(instance: dg.DagsterInstance, tags: Mapping[str, str]) -> list[PartitionBackfill]:
    """Return the backfills with these tags that have not ended."""
    return list(instance.get_backfills(BulkActionsFilter(statuses=_GOING, tags=dict(tags))))


def is_going(backfill: PartitionBackfill) -> bool:
    """Tell whether the daemon is not done with the backfill."""
    return backfill.status in _GOING


def launch_with(repository: Any) -> str:
    """Return the options by which `dagster job launch` finds the jobs of this location."""
    switch = repository.assets_defs_by_key.get(ASSET)
    metadata = switch.metadata_by_key.get(ASSET, {}) if switch is not None else {}
    return str(plain(metadata.get(LAUNCH_WITH)) or ONE_LOCATION)


def command(repository: Any, job: str, config: Mapping[str, Any]) -> str:
    """Return what launches a job of one op with `config` from a terminal."""
    told = json.dumps({"ops": {f"{job}_op": {"config": config}}})
    return f"dagster job launch {launch_with(repository)} -j {job} --config-json '{told}'"


def selection(definition: Any, keys: Sequence[str]) -> str:
    """Return `keys` as the UI's partition field takes them: `2026-05-04, [2026-05-09...2026-05-11]`.

    Keys of two dimensions, and such as have no order, are listed one by one.
    """
    if isinstance(definition, dg.MultiPartitionsDefinition) or is_dynamic(definition):
        return ", ".join(keys)
    ranges = definition.subset_with_partition_keys(list(keys)).get_partition_key_ranges(definition)
    return ", ".join(
        one.start if one.start == one.end else f"[{one.start}...{one.end}]" for one in ranges
    )
