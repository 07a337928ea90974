"""What a backfill was meant to do: its assets and their partitions, in order, and the run that came to each last."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import dagster as dg
from dagster._core.definitions.partitions.context import partition_loading_context

from backfill_assets.operations.reports.runs import KeysOf, RunFact, runs_of, step_named

# a partition of an asset; the key is None for an asset without partitions
Place = tuple[dg.AssetKey, "str | None"]


@dataclass(frozen=True)
class Plan:
    """The partitions of each asset, all runs (newest first), and the newest run about each partition."""

    keys: Mapping[dg.AssetKey, Sequence[str | None]]
    runs: Sequence[RunFact]
    newest: Mapping[Place, RunFact]
    is_guessed: bool

    @property
    def last_words(self) -> set[str]:
        """The ids of the runs after which no other came, for one of their partitions at least."""
        return {run.run_id for run in self.newest.values()}


def plan_of(instance: dg.DagsterInstance, repository: Any, backfill: Any) -> Plan:
    """Return the plan of a `PartitionBackfill`; what Dagster no longer knows is guessed from the runs."""
    runs, keys_of = list(runs_of(instance, backfill.backfill_id)), KeysOf()
    with partition_loading_context(dynamic_partitions_store=instance):
        planned = _planned(repository, backfill, runs)
        newest: dict[Place, RunFact] = {}
        for run in runs:
            for asset in _assets(repository, run, planned):
                for key in keys_of(run, _definition(repository, asset)):
                    newest.setdefault((asset, key), run)
        guessed = planned is None
        keys = planned if planned is not None else _by_runs(newest)
        ordered = {a: _ordered(_definition(repository, a), found) for a, found in keys.items()}
    return Plan(ordered, runs, newest, guessed)


def _planned(
    repository: Any, backfill: Any, runs: Sequence[RunFact]
) -> dict[dg.AssetKey, list[str | None]] | None:
    if not backfill.is_asset_backfill:
        names = backfill.partition_names
        assets = {asset for run in runs for asset in _assets(repository, run, None)}
        if not names or not assets:
            return None
        partitioned = {a: _definition(repository, a) is not None for a in sorted(assets)}
        return {a: list(names) if is_so else [None] for a, is_so in partitioned.items()}
    try:
        subset = backfill.get_asset_backfill_data(repository.asset_graph).target_subset
    except Exception:  # assets or partitions have changed since, in ways that Dagster cannot read
        return None
    found: dict[dg.AssetKey, list[str | None]] = {}
    for asset in repository.asset_graph.toposorted_asset_keys:
        if asset in subset.partitions_subsets_by_asset_key:
            part = subset.partitions_subsets_by_asset_key[asset]
            found[asset] = [str(key) for key in part.get_partition_keys()]
        elif asset in subset.non_partitioned_asset_keys:
            found[asset] = [None]
    return found


def _assets(repository: Any, run: RunFact, planned: Any) -> frozenset[dg.AssetKey]:
    """Return the assets that a run is about: those that it selects, or else those whose steps it has."""
    if run.assets is not None:
        return run.assets
    known = repository.assets_defs_by_key
    among = known if planned is None else planned
    return frozenset(
        key for key in among if key in known and step_named(known[key], key) in run.steps
    )


def _by_runs(newest: Mapping[Place, RunFact]) -> dict[dg.AssetKey, list[str | None]]:
    found: dict[dg.AssetKey, list[str | None]] = {}
    for asset, key in newest:
        found.setdefault(asset, []).append(key)
    return found


def _definition(repository: Any, asset: dg.AssetKey) -> Any:
    graph = repository.asset_graph
    return graph.get(asset).partitions_def if graph.has(asset) else None


def _ordered(definition: Any, keys: list[str | None]) -> list[str | None]:
    """Return the keys in the order of their definition, those that it no longer has at the end."""
    if definition is None:
        return keys
    if isinstance(definition, dg.TimeWindowPartitionsDefinition):
        return sorted(keys, key=lambda key: _started(definition, str(key)))
    place = {str(key): number for number, key in enumerate(definition.get_partition_keys())}
    return sorted(keys, key=lambda key: (place.get(str(key), len(place)), str(key)))


def _started(definition: dg.TimeWindowPartitionsDefinition, key: str) -> tuple[float, str]:
    try:
        return definition.start_time_for_partition_key(key).timestamp(), key
    except Exception:  # a key of another format, from before the definition was changed
        return float("inf"), key
