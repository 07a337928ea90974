"""What is left of a backfill as a backfill of its own, of the same kind, with the tags and the title of the old one."""

from __future__ import annotations

from collections.abc import Sequence

import dagster as dg
from dagster._core.execution.backfill import BulkActionStatus, PartitionBackfill
from dagster._core.storage.tags import PARENT_BACKFILL_ID_TAG, ROOT_BACKFILL_ID_TAG
from dagster._core.utils import make_new_backfill_id
from dagster._time import get_current_timestamp

from backfill_assets.controls.reason import REASON
from backfill_assets.operations.done import RESUMES
from backfill_assets.operations.launching import Wanted, request_backfill


def relaunch(
    context: dg.OpExecutionContext,
    backfill: PartitionBackfill,
    left: Wanted,
    ops: Sequence[str],
    by: str,
    reason: str,
) -> list[str]:
    """Request what is left of `backfill`, with its title and tags, and return the ids of the new backfills."""
    if not left and not ops:
        return []
    tags = _tags(backfill, by, reason)
    if not backfill.is_asset_backfill:
        return _launch_job(context.instance, backfill, left, ops, tags)
    return [
        request_backfill(
            context.instance,
            context.repository_def.asset_graph,
            left,
            tags,
            title=backfill.title,
            description=backfill.description,
            run_config=backfill.run_config,
        )
    ]


def _launch_job(
    instance: dg.DagsterInstance,
    backfill: PartitionBackfill,
    left: Wanted,
    ops: Sequence[str],
    tags: dict[str, str],
) -> list[str]:
    """Launch the job again: a backfill of its own for each set of assets that have the same partitions left."""
    by_name: dict[str, list[dg.AssetKey]] = {}
    for key, names in left.items():
        for name in names if names is not None else backfill.partition_names or ():
            by_name.setdefault(name, []).append(key)
    sets: dict[tuple[dg.AssetKey, ...], list[str]] = {}
    for name, keys in by_name.items():
        sets.setdefault(tuple(sorted(keys)), []).append(name)
    if ops:
        sets[()] = list(ops)
    order = {name: number for number, name in enumerate(backfill.partition_names or ())}
    found: list[str] = []
    for keys, names in sets.items():
        new = PartitionBackfill(
            backfill_id=make_new_backfill_id(),
            status=BulkActionStatus.REQUESTED,
            from_failure=False,
            tags=tags,
            backfill_timestamp=get_current_timestamp(),
            asset_selection=keys or None,
            title=backfill.title,
            description=backfill.description,
            run_config=backfill.run_config,
            partition_set_origin=backfill.partition_set_origin,
            partition_names=sorted(names, key=lambda name: order[name]),
        )
        instance.add_backfill(new)
        found.append(new.backfill_id)
    return found


def _tags(backfill: PartitionBackfill, by: str, reason: str) -> dict[str, str]:
    old = backfill.backfill_id
    given = {REASON: reason.strip()} if reason.strip() else {}
    return {
        **backfill.tags,
        **given,
        "launched_by": by.strip(),
        RESUMES: old,
        # as Dagster marks its own re-executions, so that the UI links the two
        PARENT_BACKFILL_ID_TAG: old,
        ROOT_BACKFILL_ID_TAG: backfill.tags.get(ROOT_BACKFILL_ID_TAG, old),
    }
