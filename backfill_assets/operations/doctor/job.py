"""The job `doctor`: what would fail in this warehouse, through each lane's door, and the statement that mends it."""

from collections.abc import Sequence
from functools import partial
from typing import Any

import dagster as dg
from pydantic import Field

from backfill_assets.io_managers.declaration import column_name, plain
from backfill_assets.io_managers.delete_insert import DeleteInsertIOManager
from backfill_assets.io_managers.partitions import schema_of
from backfill_assets.io_managers.reporting import as_failure
from backfill_assets.operations.doctor.examine import examined
from backfill_assets.operations.doctor.points import Point, Points, failed, table_of_points
from backfill_assets.operations.location import asset_named
from backfill_assets.table import SliceColumn, Table
from backfill_assets.writing import AuditTable
from backfill_assets.writing.run import Lane


class DoctorConfig(dg.Config):
    """Which tables to look at, and whether making tables is tried too."""

    tables: list[str] = Field(
        default=[],
        description="Tables (schema.table) or assets' keys; empty: all that this location writes.",
    )
    ddl: bool = Field(
        default=False,
        description="Try to make the tables that are not there, in a transaction that is rolled back.",
    )
    fail: bool = Field(default=True, description="Whether the run fails when a point does.")


def doctor_job(io_manager_key: str = "io_manager") -> dg.JobDefinition:
    """Return the job; it looks at the warehouse of the IO manager of that key."""

    @dg.op(
        name="doctor_op",
        required_resource_keys={io_manager_key},
        out=dg.Out(io_manager_key="doctor_out"),
    )
    def doctor_op(context: dg.OpExecutionContext, config: DoctorConfig) -> list:
        """Change no row: try what a rewrite does, and take it back."""
        with as_failure():
            manager: Any = getattr(context.resources, io_manager_key)
            found = points_of(context.repository_def, manager, io_manager_key, config)
        for point in found:
            (context.log.error if point.verdict == "fails" else context.log.info)(point.line)
        wrong = failed(found)
        summary = f"{len(wrong)} of {len(found)} points would fail. No row was changed."
        metadata = {
            "summary": dg.MetadataValue.md(summary),
            "points": dg.MetadataValue.md(table_of_points(found)),
            "failing": len(wrong),
            "mend": dg.MetadataValue.md(_script(wrong)),
            "json": dg.MetadataValue.json([point.as_json() for point in found]),
        }
        if wrong and config.fail:
            told = "\n".join(point.line for point in wrong)
            raise dg.Failure(f"{summary}\n{told}", metadata=metadata, allow_retries=False)
        context.add_output_metadata(metadata)
        return [dict(point.as_json()) for point in found]

    @dg.job(
        name="doctor",
        executor_def=dg.in_process_executor,
        resource_defs={"doctor_out": dg.mem_io_manager},
        tags={"dagster/priority": "100"},
    )
    def doctor() -> None:
        """Try every right, claim, limit and transaction that a load needs; changes no row."""
        doctor_op()

    return doctor


def points_of(
    repository: Any, manager: DeleteInsertIOManager, io_manager_key: str, config: DoctorConfig
) -> list[Point]:
    """Return what is found in the warehouse of `manager`, for the tables of the location that it writes."""
    names, tables = Points("location"), list[Table]()
    for name in config.tables or [None]:
        with names.tried(f"table {name}", "found"):
            tables += _tables(repository, manager, io_manager_key, name)
    lanes: list[Lane] = ["live", "backfill"] if manager.has_lane else ["live"]
    found = examined(
        {lane: partial(manager.engine_of, lane) for lane in lanes},
        list(dict.fromkeys(tables)),
        AuditTable(schema=manager.audit_schema),
        ddl=config.ddl,
    )
    if not manager.has_lane:
        lane = Points("backfill")
        lane.note("connection", "backfills use the live lane's, since no other is set")
        found += lane.found
    return failed(names.found) + found


def _tables(
    repository: Any, manager: DeleteInsertIOManager, io_manager_key: str, name: str | None
) -> Sequence[Table]:
    """Return the table of the asset that is named, or those of all assets that the IO manager stores."""
    if name is not None:
        key, asset = asset_named(repository, name, f"{name} cannot be looked at", _is_written)
        return [_table(key, asset, manager)]
    return [
        _table(key, asset, manager)
        for key, asset in repository.assets_defs_by_key.items()
        if _is_written(asset) and asset.get_io_manager_key_for_asset_key(key) == io_manager_key
    ]


def _is_written(asset: dg.AssetsDefinition) -> bool:
    return asset.is_executable


def _table(key: dg.AssetKey, asset: dg.AssetsDefinition, manager: DeleteInsertIOManager) -> Table:
    metadata, path = asset.metadata_by_key.get(key, {}), list(key.path)
    cut_by = plain(metadata.get("partition_expr"))
    is_one = isinstance(cut_by, str)
    return Table(
        str(plain(metadata.get("table")) or path[-1]),
        schema=schema_of(metadata, manager.schema_, path),
        database=plain(metadata.get("database")),
        # of whatever kind: the doctor asks for no window
        slice_column=SliceColumn(column_name(cut_by)) if is_one else None,
        dimensions=()
        if is_one
        else tuple(column_name(str(name)) for name in (cut_by or {}).values()),
        source=plain(metadata.get("source")),
    )


def _script(wrong: Sequence[Point]) -> str:
    told = "\n".join(dict.fromkeys(point.do for point in wrong))
    return f"```\n{told}\n```" if told else "nothing"
