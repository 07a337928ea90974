"""What a backfill was asked to do, partition by partition, as it was planned then and not as the calendar is now."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import dagster as dg
from dagster._core.definitions.partitions.context import partition_loading_context
from dagster._core.execution.backfill import PartitionBackfill
from dagster._time import datetime_from_timestamp

from backfill_assets.errors import DeclarationError
from backfill_assets.operations.launching import Wanted


@dataclass(frozen=True)
class Plan:
    """The partitions of each asset, None for an asset without any; `op_job` has those of a job without assets.

    `gone` names what was planned and is not there any more: an asset of this location, a partition, or a partition that
    now means another stretch of time.
    """

    assets: Wanted
    op_job: Sequence[str] = ()
    gone: Mapping[str, Sequence[str]] = field(default_factory=dict)


def planned(instance: dg.DagsterInstance, repository: Any, backfill: PartitionBackfill) -> Plan:
    """Return the plan of `backfill`, without what is gone."""
    then = partition_loading_context(datetime_from_timestamp(backfill.backfill_timestamp), instance)
    if not backfill.is_asset_backfill:
        return _of_job(instance, repository, backfill)
    with then:
        target = backfill.get_asset_backfill_data(repository.asset_graph).target_subset
        subsets = dict(target.partitions_subsets_by_asset_key)
        wanted: dict[dg.AssetKey, Sequence[str] | None] = {
            key: list(subset.get_partition_keys()) for key, subset in subsets.items()
        }
    wanted |= dict.fromkeys(target.non_partitioned_asset_keys)
    cuts = {key: getattr(subset, "partitions_def", None) for key, subset in subsets.items()}
    return _still_there(instance, repository, wanted, cuts)


def _of_job(instance: dg.DagsterInstance, repository: Any, backfill: PartitionBackfill) -> Plan:
    names, job = list(backfill.partition_names or ()), str(backfill.job_name)
    if not repository.has_job(job):
        raise DeclarationError(
            f"backfill {backfill.backfill_id} cannot be resumed",
            f"this location has no job {job!r} any more",
            "Launch the partitions that are left by another job, or from their assets' pages",
        )
    keys = sorted(
        backfill.asset_selection or repository.get_job(job).asset_layer.executable_asset_keys
    )
    if not keys:
        return Plan({}, op_job=names)
    has = {key: repository.asset_graph.get(key).partitions_def is not None for key in keys}
    wanted = {key: names if has[key] else None for key in keys}
    return _still_there(instance, repository, wanted, {})


def _still_there(
    instance: dg.DagsterInstance,
    repository: Any,
    wanted: Wanted,
    cuts: Mapping[dg.AssetKey, Any],
) -> Plan:
    assets: dict[dg.AssetKey, Sequence[str] | None] = {}
    gone: dict[str, Sequence[str]] = {}
    for key, names in wanted.items():
        there = key in repository.assets_defs_by_key
        now: Any = repository.asset_graph.get(key).partitions_def if there else None
        if not there or (names is None) != (now is None):
            gone[key.to_user_string()] = ["(all of it)"] if names is None else names
            continue
        if names is None:
            assets[key] = None
            continue
        keys = {str(name) for name in now.get_partition_keys(dynamic_partitions_store=instance)}
        kept = [name for name in names if name in keys and _is_same(cuts.get(key), now, name)]
        lost = sorted(set(names) - set(kept))
        if kept:
            assets[key] = kept
        if lost:
            gone[key.to_user_string()] = lost
    return Plan(assets, gone=gone)


def _is_same(then: Any, now: Any, name: str) -> bool:
    """Tell whether a partition still is the stretch of time that it was, where it is one."""
    kinds = (then, now)
    if not all(isinstance(one, dg.TimeWindowPartitionsDefinition) for one in kinds):
        return True
    if (then.timezone, then.cron_schedule, then.fmt) == (now.timezone, now.cron_schedule, now.fmt):
        return True
    was, is_ = (one.time_window_for_partition_key(name) for one in kinds)
    return (was.start, was.end) == (is_.start, is_.end)
