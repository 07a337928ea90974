"""What a submitted run is about: its assets, their partitions, and when the oldest of these ended.

Asked of the workspace, which knows how partitions are cut; where it does not answer, of the keys' names.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

import dagster as dg

from backfill_assets.controls.lanes import RANGE, partitions_of
from backfill_assets.controls.tables import names_of
from backfill_assets.partition_keys import end_by_name, is_dynamic, known_keys, oldest_end

if TYPE_CHECKING:
    from dagster._core.workspace.context import BaseWorkspaceRequestContext

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class RunTarget:
    """The assets of a run, the partition keys that it names (all of a range), and the end of the oldest.

    `tables` are all names of what its assets write. `exists` is False when every asset's partitions are known and none
    of them has the keys.
    """

    assets: frozenset[dg.AssetKey]
    tables: frozenset[str]
    keys: tuple[str, ...]
    ended: datetime | None
    exists: bool = True


def run_target(run: dg.DagsterRun, workspace: BaseWorkspaceRequestContext) -> RunTarget:
    """Return what `run` is about."""
    keys = partitions_of(run.tags)
    try:
        graph = workspace.asset_graph
        assets = frozenset(run.asset_selection or graph.asset_keys_for_job(run.job_name))
        definitions = [
            found
            for asset in assets
            if graph.has(asset) and (found := graph.get(asset).partitions_def) is not None
        ]
        tables = _names(graph, assets)
    except Exception as error:
        # a location that does not load must not keep a run from being queued in the right lane
        _log.warning("The workspace does not tell what run %s is about: %s", run.run_id, error)
        assets, definitions = frozenset(run.asset_selection or ()), []
        tables = frozenset(name for asset in assets for name in names_of(asset, {}))
    if not keys:
        return RunTarget(assets, tables, (), None)
    for definition in definitions:
        known = known_keys(definition, keys, is_range=RANGE[0] in run.tags)
        if known:
            return RunTarget(assets, tables, tuple(known), oldest_end(definition, known))
    told = bool(definitions) and not any(map(is_dynamic, definitions))
    return RunTarget(assets, tables, keys, end_by_name(keys), exists=not told)


def _names(graph: Any, assets: Iterable[dg.AssetKey]) -> frozenset[str]:
    return frozenset(
        name
        for asset in assets
        for name in names_of(asset, graph.get(asset).metadata if graph.has(asset) else {})
    )
