"""What a backfill, and whatever resumed it, has done: by the audit for tables of ours, else by Dagster's own events."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import dagster as dg
from dagster._core.execution.backfill import BulkActionsFilter, PartitionBackfill
from dagster._core.storage.dagster_run import RunsFilter
from dagster._core.storage.tags import PARENT_BACKFILL_ID_TAG

from backfill_assets.controls.lanes import BACKFILL, PARTITION, RANGE
from backfill_assets.errors import MissingTable
from backfill_assets.io_managers.declaration import WRITTEN_BY, declared_table, plain
from backfill_assets.io_managers.delete_insert import DeleteInsertIOManager
from backfill_assets.io_managers.partitions import schema_of
from backfill_assets.operations.launching import Wanted
from backfill_assets.slice import WHOLE
from backfill_assets.table import Table
from backfill_assets.writing import AuditTable

RESUMES = "resumes"
_PAGE = 1000
_WORDS = {
    dg.DagsterRunStatus.FAILURE: "failed or refused",
    dg.DagsterRunStatus.CANCELED: "cancelled",
    dg.DagsterRunStatus.SUCCESS: "its run wrote nothing",
}


@dataclass(frozen=True)
class Family:
    """A backfill, those that took it up (ours and Dagster's own re-executions), and their runs, the newest first."""

    backfills: tuple[PartitionBackfill, ...]
    runs: tuple[dg.DagsterRun, ...]

    @property
    def ids(self) -> list[str]:
        """The ids of the backfills, the original one first."""
        return [backfill.backfill_id for backfill in self.backfills]

    def last_seen(self, key: dg.AssetKey | None, names: Sequence[str]) -> dict[str, str]:
        """Return in words what became of the newest attempt at each of `names`."""
        place = {name: number for number, name in enumerate(names)}
        found: dict[str, str] = {}
        for run in self.runs:
            if key is not None and run.asset_selection and key not in run.asset_selection:
                continue
            for name in _names_of(run, names, place):
                found.setdefault(name, _WORDS.get(run.status, run.status.value.lower()))
        return {name: found.get(name, "never launched") for name in names}


def family_of(instance: dg.DagsterInstance, backfill: PartitionBackfill) -> Family:
    """Return the backfill and everything that took it up."""
    found = {backfill.backfill_id: backfill}
    left = [backfill.backfill_id]
    while left:
        parent = left.pop()
        for tag in (RESUMES, PARENT_BACKFILL_ID_TAG):
            for child in instance.get_backfills(BulkActionsFilter(tags={tag: parent})):
                if child.backfill_id not in found:
                    found[child.backfill_id] = child
                    left.append(child.backfill_id)
    runs = instance.get_runs(RunsFilter(tags={BACKFILL: list(found)}))
    return Family(tuple(found.values()), tuple(runs))


def done_of(
    instance: dg.DagsterInstance,
    repository: Any,
    manager: DeleteInsertIOManager,
    io_manager_key: str,
    family: Family,
    assets: Wanted,
) -> dict[dg.AssetKey, frozenset[str | None]]:
    """Return the partitions of each asset that are done; None stands for an asset without any."""
    tables = {
        key: table
        for key in assets
        if (table := _table_of(repository, manager, io_manager_key, key)) is not None
    }
    runs = [run.run_id for run in family.runs]
    found: dict[dg.AssetKey, frozenset[str | None]] = {
        key: _materialized(instance, key, family) for key in assets if key not in tables
    }
    for key, written in _written(manager, tables, runs, family.ids).items():
        whole = frozenset([None] if WHOLE in written else [])
        found[key] = written if assets[key] is not None else whole
    return found


def _written(
    manager: DeleteInsertIOManager,
    tables: Mapping[dg.AssetKey, Table],
    runs: Sequence[str],
    backfills: Sequence[str],
) -> dict[dg.AssetKey, frozenset[str]]:
    """Return the partitions of each table that the audit has of these runs; none where there is no warehouse yet."""
    if not tables:
        return {}
    engine, audit = manager.engine_of("backfill"), AuditTable(schema=manager.audit_schema)
    try:
        with engine.session(who="a resume", read_only=True) as session:
            return {
                key: frozenset(audit.written_by(session, runs, table, backfills))
                for key, table in tables.items()
            }
    except MissingTable:
        return dict.fromkeys(tables, frozenset[str]())


def left_of(assets: Wanted, done: Mapping[dg.AssetKey, frozenset[str | None]]) -> Wanted:
    """Return what is planned and not done."""
    left: dict[dg.AssetKey, Sequence[str] | None] = {}
    for key, names in assets.items():
        if names is None and None not in done[key]:
            left[key] = None
        elif names is not None and (missing := [n for n in names if n not in done[key]]):
            left[key] = missing
    return left


def _table_of(
    repository: Any, manager: DeleteInsertIOManager, io_manager_key: str, key: dg.AssetKey
) -> Table | None:
    """Return the table that our IO manager writes for an asset; None where another one, or the asset itself, does."""
    asset = repository.assets_defs_by_key[key]
    if not asset.is_executable or asset.get_io_manager_key_for_asset_key(key) != io_manager_key:
        return None
    metadata, path = asset.metadata_by_key.get(key, {}), list(key.path)
    output = asset.node_def.output_def_named(asset.get_output_name_for_asset_key(key))
    if output.dagster_type.is_nothing and plain(metadata.get(WRITTEN_BY)) is None:
        return None
    schema = schema_of(metadata, manager.schema_, path)
    return declared_table(metadata, name=path[-1], schema=schema, slice_column=None, dimensions=())


def _materialized(
    instance: dg.DagsterInstance, key: dg.AssetKey, family: Family
) -> frozenset[str | None]:
    """Return the partitions that the family's runs have materialized, as Dagster has it."""
    runs = {run.run_id for run in family.runs}
    since = min(backfill.backfill_timestamp for backfill in family.backfills)
    wanted = dg.AssetRecordsFilter(asset_key=key, after_timestamp=since)
    found: set[str | None] = set()
    cursor: str | None = None
    while True:
        page = instance.fetch_materializations(wanted, limit=_PAGE, cursor=cursor, ascending=True)
        found.update(record.partition_key for record in page.records if record.run_id in runs)
        if not page.has_more:
            return frozenset(found)
        cursor = page.cursor


def _names_of(run: dg.DagsterRun, names: Sequence[str], place: Mapping[str, int]) -> Sequence[str]:
    start, end = (run.tags.get(edge) for edge in RANGE)
    if start in place and end in place:
        return names[place[start] : place[end] + 1]  # pyright: ignore[reportArgumentType]
    name = run.tags.get(PARTITION)
    return [name] if name in place else []  # pyright: ignore[reportReturnType]
