"""The job `find_late_rows`: which partitions have rows that came after they were loaded, and their backfill."""

from collections.abc import Sequence
from typing import Any

import dagster as dg
from pydantic import Field

from backfill_assets.checks.late import LateSlice, late_slices, source_of
from backfill_assets.engines import Report
from backfill_assets.errors import DeclarationError, MissingTable
from backfill_assets.io_managers.delete_insert import DeleteInsertIOManager
from backfill_assets.io_managers.kinds import kind_of
from backfill_assets.io_managers.reporting import as_failure
from backfill_assets.operations.launching import command, going, request_backfill, selection
from backfill_assets.operations.location import asset_named
from backfill_assets.operations.ranges import keys_between, partitions_of_asset, target_for
from backfill_assets.writing import AuditTable

TAG = "late_rows"
_SHOWN = 1000


class LateRowsConfig(dg.Config):
    """A table, and which of its partitions are looked at; both ends belong to the range."""

    table: str = Field(description="The table (schema.table) or the asset's key.")
    first: str | None = Field(default=None, description="The first partition; all from the start.")
    last: str | None = Field(default=None, description="The last partition; all to the end.")
    launch: bool = Field(default=False, description="Request the backfill of what is found.")
    reason: str = Field(default="", description="Why; by default what came late is told.")
    by: str = Field(default="", description="Who asks for it.")


def late_rows_job(io_manager_key: str = "io_manager") -> dg.JobDefinition:
    """Return the job; it reads through the IO manager of that key."""

    @dg.op(
        name="find_late_rows_op",
        required_resource_keys={io_manager_key},
        out=dg.Out(io_manager_key="late_rows_out"),
    )
    def find_late_rows_op(context: dg.OpExecutionContext, config: LateRowsConfig) -> dict:
        """Write nothing to the warehouse: compare arrivals with what the audit says of each load."""
        with as_failure():
            manager: Any = getattr(context.resources, io_manager_key)
            key, asset = asset_named(
                context.repository_def, config.table, _what(config), lambda one: one.is_executable
            )
            found = late_partitions(
                context.instance, manager, key, asset, context.log.info, config.first, config.last
            )
            told = _told(context, config, key, asset, found)
        context.log.info(told["summary"])
        context.add_output_metadata(_metadata(told))
        return told

    @dg.job(
        name="find_late_rows",
        executor_def=dg.in_process_executor,
        resource_defs={"late_rows_out": dg.mem_io_manager},
        tags={"dagster/priority": "100"},
    )
    def find_late_rows() -> None:
        """Partitions whose source got rows after they were loaded; launches their backfill if asked to."""
        find_late_rows_op()

    return find_late_rows


def late_partitions(
    instance: dg.DagsterInstance,
    manager: DeleteInsertIOManager,
    key: dg.AssetKey,
    asset: dg.AssetsDefinition,
    report: Report,
    first: str | None = None,
    last: str | None = None,
) -> list[LateSlice]:
    """Return the partitions of an asset, in their order, that have late rows."""
    what = f"{key.to_user_string()} cannot be looked through for late rows"
    definition = partitions_of_asset(asset, key)
    if definition is None:
        raise DeclarationError(what, "it has no partitions", "Name an asset that has")
    keys = keys_between(definition, first, last, what, instance)
    if not keys:
        return []
    engine, audit = manager.engine_of("backfill"), AuditTable(schema=manager.audit_schema)
    try:
        with engine.session(who="a look for late rows", read_only=True, report=report) as session:
            target = target_for(
                manager, key, asset, keys, lambda t, c: kind_of(session, t, c, None)
            )
            source_of(target.table)
            return late_slices(session, audit, target.table, target.slices)
    except MissingTable as error:
        raise DeclarationError(what, error.why, "Load it once, and make its source") from error


def reason_for(found: Sequence[LateSlice]) -> str:
    """Return in a sentence what came late: how many rows, for which partitions, and when the last of them came."""
    rows = sum(one.rows for one in found)
    names = [one.slice.name for one in found]
    where = names[0] if len(names) == 1 else f"{len(names)} partitions, {names[0]} to {names[-1]}"
    last = max(one.newest for one in found)
    return (
        f"{rows} row{'' if rows == 1 else 's'} arrived late for {where}, the last at"
        f" {last:%Y-%m-%d %H:%M:%S} UTC"
    )


def _told(
    context: dg.OpExecutionContext,
    config: LateRowsConfig,
    key: dg.AssetKey,
    asset: dg.AssetsDefinition,
    found: Sequence[LateSlice],
) -> dict[str, Any]:
    """Launch what is to be launched, and return everything as plain values."""
    lines = [
        {
            "partition": one.slice.name,
            "late_rows": one.rows,
            "first_arrived": one.oldest.isoformat(timespec="microseconds"),
            "last_arrived": one.newest.isoformat(timespec="microseconds"),
            "source_read_at": one.source_read_at.isoformat(timespec="microseconds"),
        }
        for one in found
    ]
    told: dict[str, Any] = {"table": config.table, "lines": lines, "backfill": None}
    if not found:
        return {**told, "summary": f"No row of {config.table} came after its partition was loaded."}
    names = [one.slice.name for one in found]
    told["partitions"] = selection(partitions_of_asset(asset, key), names)
    told["command"] = _command(context.repository_def, config)
    summary = f"{config.table}: {reason_for(found)}."
    if not config.launch:
        how = f"To load {told['partitions']} again, type that into Materialize in the UI, or: {told['command']}"
        return {**told, "summary": f"{summary} {how}"}
    backfill, left_out = _launch(context, config, key, found)
    told["backfill"] = backfill
    if left_out:
        summary += f" {len(left_out)} of the partitions are in a backfill for late rows already."
    done = f"Backfill {backfill} was requested." if backfill else "Nothing was requested."
    return {**told, "summary": f"{summary} {done}"}


def _launch(
    context: dg.OpExecutionContext,
    config: LateRowsConfig,
    key: dg.AssetKey,
    found: Sequence[LateSlice],
) -> tuple[str | None, set[str]]:
    """Request the backfill of what no other one for late rows has still to do; return its id and what was left out."""
    mark = {TAG: key.to_user_string()}
    asset_graph = context.repository_def.asset_graph
    under_way = {
        name
        for backfill in going(context.instance, mark)
        for name in backfill.get_asset_backfill_data(asset_graph)
        .get_target_partitions_subset(key)
        .get_partition_keys()
    }
    wanted = [one for one in found if one.slice.name not in under_way]
    left_out = {one.slice.name for one in found} & under_way
    if not wanted:
        return None, left_out
    tags = context.run.tags
    by = config.by or tags.get("launched_by") or tags.get("user") or "find_late_rows"
    backfill = request_backfill(
        context.instance,
        asset_graph,
        {key: [one.slice.name for one in wanted]},
        {**mark, "reason": config.reason.strip() or reason_for(wanted), "launched_by": by},
        title="Rows that arrived late",
    )
    return backfill, left_out


def _command(repository: Any, config: LateRowsConfig) -> str:
    asked = {"table": config.table, "first": config.first, "last": config.last, "launch": True}
    given = {name: value for name, value in asked.items() if value is not None}
    return command(repository, "find_late_rows", given)


def _metadata(told: dict[str, Any]) -> dict[str, Any]:
    columns = ("partition", "late_rows", "first_arrived", "last_arrived", "source_read_at")
    records = [
        dg.TableRecord({name: str(line[name]) for name in columns})
        for line in told["lines"][:_SHOWN]
    ]
    schema = dg.TableSchema(columns=[dg.TableColumn(name, "string") for name in columns])
    found: dict[str, Any] = {
        "summary": dg.MetadataValue.md(told["summary"]),
        "partitions": len(told["lines"]),
        "late_rows": sum(line["late_rows"] for line in told["lines"]),
        "table": dg.MetadataValue.table(records=records, schema=schema),
        "json": dg.MetadataValue.json(told),
    }
    if told["lines"]:
        found["select_in_ui"] = told["partitions"]
        found["command"] = told["command"]
    if told["backfill"]:
        found["backfill"] = told["backfill"]
    return found


def _what(config: LateRowsConfig) -> str:
    return f"{config.table!r} cannot be looked through for late rows"
