"""Who writes the tables of a migration, as Dagster knows it: what of that is paused, requested or running now."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import dagster as dg
from dagster._core.execution.backfill import BulkActionsFilter, BulkActionStatus
from dagster._core.storage.dagster_run import NOT_FINISHED_STATUSES

from backfill_assets.controls.switch import Switch, holding
from backfill_assets.controls.tables import names_of, same_table, tables_in
from backfill_assets.io_managers.declaration import plain
from backfill_assets.io_managers.partitions import schema_of
from backfill_assets.strategies.cutover.guards import Guard, named, together
from backfill_assets.strategies.dual_write import Migration

_GOING = [BulkActionStatus.REQUESTED, BulkActionStatus.CANCELING, BulkActionStatus.FAILING]
_SHOWN = 5


@dataclass(frozen=True)
class Writers:
    """The assets that write either table: their keys, and every name by which a pause or a tag may mean them."""

    keys: frozenset[dg.AssetKey]
    names: frozenset[str]

    @classmethod
    def of(cls, repository: Any, migration: Migration, schema: str | None) -> Writers:
        """Find them by key and metadata; `schema` is that of the IO manager, for assets that name none."""
        wanted = {same_table(side.name) for side in (migration.old, migration.new)}
        keys, names = set[dg.AssetKey](), set(wanted)
        for key, asset in repository.assets_defs_by_key.items():
            metadata, path = asset.metadata_by_key.get(key, {}), list(key.path)
            table = str(plain(metadata.get("table")) or path[-1])
            written = same_table(f"{schema_of(metadata, schema, path)}.{table}")
            called = names_of(key, metadata)
            if written in wanted or not called.isdisjoint(wanted):
                keys.add(key)
                names |= called
        return cls(frozenset(keys), frozenset(names))


def not_paused(instance: dg.DagsterInstance, writers: Writers) -> Guard:
    """Return `not_paused`: nobody has paused the backfills of either table, as one does who looks into something."""

    def asked() -> str | None:
        on = holding(Switch(instance).pauses(), writers.names)
        return together([pause.told(pause.since) for pause in on]) or None

    return named("not_paused", asked)


def no_backfill(instance: dg.DagsterInstance, writers: Writers) -> Guard:
    """Return `no_backfill`: no backfill of either table is requested or going on."""

    def asked() -> str | None:
        going = instance.get_backfills(BulkActionsFilter(statuses=_GOING))
        ids = [one.backfill_id for one in going if not writers.keys.isdisjoint(one.asset_selection or ())]  # fmt: skip
        return f"{_listed('backfill', ids)} not ended" if ids else None

    return named("no_backfill", asked)


def no_run(instance: dg.DagsterInstance, writers: Writers, repository: Any, own: str) -> Guard:
    """Return `no_run`: no run of either table's assets waits or is in progress, apart from the run `own`."""

    def asked() -> str | None:
        found = instance.get_runs(dg.RunsFilter(statuses=NOT_FINISHED_STATUSES))
        ids = [run.run_id[:8] for run in found if run.run_id != own and _writes(run, writers, repository)]  # fmt: skip
        return f"{_listed('run', ids)} not ended" if ids else None

    return named("no_run", asked)


def _writes(run: dg.DagsterRun, writers: Writers, repository: Any) -> bool:
    """Tell whether a run is about any of the assets: by its selection, its tags, or all that its job has."""
    if not writers.names.isdisjoint(tables_in(run.tags)):
        return True
    if run.asset_selection is not None:
        return not writers.keys.isdisjoint(run.asset_selection)
    if not repository.has_job(run.job_name):
        return False  # of another location, which has no asset of ours
    layer = repository.get_job(run.job_name).asset_layer
    return not writers.keys.isdisjoint(layer.executable_asset_keys)


def _listed(what: str, ids: Sequence[str]) -> str:
    more = f" and {len(ids) - _SHOWN} more" if len(ids) > _SHOWN else ""
    return f"{what}{'s' * (len(ids) > 1)} {', '.join(ids[:_SHOWN])}{more} {'have' if len(ids) > 1 else 'has'}"
