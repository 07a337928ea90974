"""The asset factory: a daily-partitioned asset whose slices are replayed, launched and checked like any other."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import dagster as dg

from backfill_assets.errors import DeclarationError
from backfill_assets.io_managers.declaration import table_metadata
from backfill_assets.io_managers.values import PerRange
from backfill_assets.strategies.replay.events import Events
from backfill_assets.strategies.replay.reducing import Transform
from backfill_assets.strategies.replay.replaying import Replay
from backfill_assets.strategies.replay.source import EventSource
from backfill_assets.table import Table


def replay_asset(
    key: str | Sequence[str],
    *,
    source: EventSource,
    events: Events,
    table: Table,
    partitions_def: dg.TimeWindowPartitionsDefinition,
    transform: Transform = None,
    max_partitions_per_run: int = 31,
    memory_mb: int = 96,
    readers: int = 2,
    folder: str | Path | None = None,
    quarantine_schema: str = "backfill",
    group_name: str | None = None,
    description: str | None = None,
    code_version: str | None = None,
    deps: Iterable[Any] = (),
    metadata: Mapping[str, Any] | None = None,
    io_manager_key: str = "io_manager",
) -> dg.AssetsDefinition:
    """Return an asset whose partitions are made from events that are read again.

    The partitions of a run, `max_partitions_per_run` at the most, are read in one pass. `transform` makes rows of the
    last event of each key: an SQL query on the relation `events` (DuckDB's dialect; one column for each field), a
    function from a pandas frame, or from a `pyarrow.Table` where its parameter is annotated so; without one the fields
    are the columns. `memory_mb` bounds what is held of the events, beside what the clients of the `readers` shards that are
    read at a time buffer; the rest lies in `folder` (by default the system's for temporary files) while the run lasts.
    Events that cannot be read go to `<quarantine_schema>.replay_quarantine` where the events' policy is to put them aside.
    """
    path = [key] if isinstance(key, str) else list(key)
    if table.slice_column is None:
        raise DeclarationError(
            f"asset {'/'.join(path)} cannot be replayed",
            f"{table.qualified} has no slice column, so nobody could tell which rows an event belongs to",
            "Declare slice_column=SliceColumn(...)",
        )
    replay = Replay(
        source,
        events,
        transform,
        memory_mb,
        readers,
        Path(folder) if folder is not None else None,
        quarantine_schema,
    )

    @dg.asset(
        name=path[-1],
        key_prefix=path[:-1] or None,
        partitions_def=partitions_def,
        metadata={**table_metadata(table), "replay": source.name, **(metadata or {})},
        backfill_policy=dg.BackfillPolicy.multi_run(max_partitions_per_run=max_partitions_per_run),
        group_name=group_name,
        description=description or f"Replayed from {source.name}.",
        code_version=code_version,
        deps=list(deps),
        kinds={"replay"},
        io_manager_key=io_manager_key,
    )
    def replayed() -> PerRange:
        return PerRange(replay.opened)

    return replayed
