"""The asset pair: old and new path on the same partition, from one read of the source, so that only their logic differs."""

import copy
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime, timezone
from typing import Any

import dagster as dg

from backfill_assets.errors import DeclarationError
from backfill_assets.io_managers.declaration import table_metadata
from backfill_assets.io_managers.frames import is_arrow
from backfill_assets.io_managers.values import Made, PerSlice
from backfill_assets.slice import Slice
from backfill_assets.strategies.dual_write.migration import Migration
from backfill_assets.strategies.dual_write.side import Side

# from a day and its source's rows to what is written of them
Path = Callable[[Slice, Any], Any]


def dual_write_assets(
    migration: Migration,
    *,
    partitions_def: dg.TimeWindowPartitionsDefinition,
    read: Callable[[Slice], Any],
    old: Path | None,
    new: Path | None,
    old_key: str | Sequence[str],
    new_key: str | Sequence[str],
    max_partitions_per_run: int = 1,
    deps: Iterable[Any] = (),
    group_name: str | None = None,
    code_versions: tuple[str | None, str | None] = (None, None),
    io_manager_key: str = "io_manager",
) -> list[dg.AssetsDefinition | dg.AssetSpec]:
    """Return the assets of both sides.

    `read` gives the source's rows of a day (any value), once for both paths: `old` and `new` are given the day and
    these rows, and return what is written (pandas, arrow). A path that is None is a job of another system, of which
    an asset tells that is only observed: report its loads as materializations with `report_external_load`, or by the
    REST endpoint `/report_asset_materialization/<key>`.

    The rows of `max_partitions_per_run` days are held until both sides of them are written. Both sides count as read at the same
    moment, so neither overwrites a later load. Each side's slice is one transaction, as with every other asset.
    """
    keys = [dg.AssetKey([key] if isinstance(key, str) else list(key)) for key in (old_key, new_key)]
    sides, paths = (migration.old, migration.new), (old, new)
    if keys[0] == keys[1] or paths == (None, None):
        raise DeclarationError(
            f"the pair of the migration {migration.name} cannot be declared so",
            "both sides have the same key" if keys[0] == keys[1] else "both paths are jobs of another system",
            "Give each side a key of its own, and at least one path",
        )  # fmt: skip
    written = [
        (key, side, path, version)
        for key, side, path, version in zip(keys, sides, paths, code_versions, strict=True)
        if path is not None
    ]
    external: list[dg.AssetsDefinition | dg.AssetSpec] = [
        dg.AssetSpec(
            key,
            partitions_def=partitions_def,
            group_name=group_name,
            deps=list(deps),
            description=f"{side.name}, which a job of another system writes.",
            metadata=_metadata(migration, side),
            kinds={"external"},
        )
        for key, side, path in zip(keys, sides, paths, strict=True)
        if path is None
    ]

    @dg.multi_asset(
        name=f"dual_write_{migration.name}",
        outs={
            key.to_python_identifier(): dg.AssetOut(
                key=key,
                io_manager_key=io_manager_key,
                metadata=_metadata(migration, side),
                group_name=group_name,
                code_version=version,
                description=f"{side.name}, written from the same read of the source as its counterpart.",
            )
            for key, side, _, version in written
        },
        partitions_def=partitions_def,
        deps=list(deps),
        backfill_policy=dg.BackfillPolicy.multi_run(max_partitions_per_run=max_partitions_per_run),
    )
    def pair():
        rows = _Once(read, len(written))
        for key, _, path, _ in written:
            assert path is not None
            yield dg.Output(PerSlice(rows.through(path)), output_name=key.to_python_identifier())

    return [pair, *external]


def report_external_load(
    instance: dg.DagsterInstance,
    key: dg.AssetKey,
    partition: str,
    metadata: Mapping[str, Any] | None = None,
) -> None:
    """Tell Dagster that a job of another system has written a day."""
    instance.report_runless_asset_event(
        dg.AssetMaterialization(asset_key=key, partition=partition, metadata=metadata)
    )


class _Once:
    """Reads each day of the source once, and forgets it when all paths have had it."""

    def __init__(self, read: Callable[[Slice], Any], paths: int) -> None:
        self._read, self._paths = read, paths
        self._held: dict[Any, tuple[datetime, Any, int]] = {}

    def through(self, path: Path) -> Callable[[Slice], Made]:
        """Return what computes a day of one path from the rows that the other one has, or will have, too."""

        def compute(slice_: Slice) -> Made:
            read_at, rows = self._rows(slice_)
            # a path that changes its rows in place would change what the other one is given
            own = rows if is_arrow(type(rows)) else copy.deepcopy(rows)
            return Made(path(slice_, own), read_at, {"dual_write": "one read of the source"})

        return compute

    def _rows(self, slice_: Slice) -> tuple[datetime, Any]:
        read_at, rows, left = self._held.pop(slice_.window, (None, None, self._paths))
        if read_at is None:
            read_at = datetime.now(timezone.utc)
            rows = self._read(slice_)
        if left > 1:
            self._held[slice_.window] = (read_at, rows, left - 1)
        return read_at, rows


def _metadata(migration: Migration, side: Side) -> dict[str, Any]:
    return {**table_metadata(side.table), "migration": migration.name}
