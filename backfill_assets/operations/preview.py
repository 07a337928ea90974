"""The job `preview_backfill`: which partitions, what is there, what would come, what would be refused, how long."""

from collections.abc import Collection
from datetime import datetime, timezone
from typing import Any

import dagster as dg
from dagster._core.definitions.partitions.context import partition_loading_context
from pydantic import Field

from backfill_assets.checks.facts import newest_loads
from backfill_assets.controls.pausing import Paused, forgotten_pauses
from backfill_assets.controls.reason import missing_reason
from backfill_assets.controls.retention import retention
from backfill_assets.errors import DeclarationError, MissingTable
from backfill_assets.io_managers.delete_insert import DeleteInsertIOManager
from backfill_assets.io_managers.kinds import kind_of
from backfill_assets.io_managers.reporting import as_failure
from backfill_assets.operations.location import asset_named
from backfill_assets.operations.previewing import Asked, Preview, preview
from backfill_assets.operations.ranges import keys_between, partitions_of_asset, target_for
from backfill_assets.operations.source_rows import select_of
from backfill_assets.slice import Slice
from backfill_assets.table import Table
from backfill_assets.writing import AuditTable, Run

_SHOWN = 1000
_BARS = 60


class PreviewConfig(dg.Config):
    """A range of one table's partitions; both ends belong to it."""

    table: str = Field(description="The table (schema.table) or the asset's key.")
    first: str = Field(description="The first partition, as Dagster prints it: 2026-05-01.")
    last: str = Field(description="The last partition, which is rewritten too.")
    reason: str = Field(default="", description="The reason that the backfill would be given.")


def preview_job(io_manager_key: str = "io_manager") -> dg.JobDefinition:
    """Return the job; it reads through the IO manager of that key."""

    @dg.op(
        name="preview_backfill_op",
        required_resource_keys={io_manager_key},
        out=dg.Out(io_manager_key="preview_out"),
    )
    def preview_backfill_op(context: dg.OpExecutionContext, config: PreviewConfig) -> dict:
        """Write nothing: look at each partition of the range."""
        with as_failure():
            manager: Any = getattr(context.resources, io_manager_key)
            found = previewed(context, manager, config)
        context.log.info(_summary(found, config) + forgotten_pauses(context.instance))
        context.add_output_metadata(_metadata(found, config))
        return found.as_json()

    @dg.job(
        name="preview_backfill",
        executor_def=dg.in_process_executor,
        resource_defs={"preview_out": dg.mem_io_manager},
        tags={"dagster/priority": "100"},
    )
    def preview_backfill() -> None:
        """What a backfill would do; writes nothing. Dates are inclusive."""
        preview_backfill_op()

    return preview_backfill


def previewed(
    context: dg.OpExecutionContext, manager: DeleteInsertIOManager, config: PreviewConfig
) -> Preview:
    """Return the preview of a range of an asset of the location."""
    key, asset = asset_named(
        context.repository_def,
        config.table,
        f"{config.table!r} cannot be previewed",
        lambda asset: asset.is_executable,
    )
    definition: Any = partitions_of_asset(asset, key)
    if definition is None:
        raise _cannot(
            config, f"asset {key.to_user_string()} has no partitions", "Name one that has"
        )
    with partition_loading_context(dynamic_partitions_store=context.instance):
        keys = keys_between(definition, config.first, config.last, _what(config), context.instance)
        try:
            return _looked_at(context, manager, key, asset, keys, config)
        except MissingTable as error:
            raise _cannot(config, error.why, "Load its source first") from error


def _looked_at(
    context: dg.OpExecutionContext,
    manager: DeleteInsertIOManager,
    key: dg.AssetKey,
    asset: dg.AssetsDefinition,
    keys: list[str],
    config: PreviewConfig,
) -> Preview:
    select = select_of(asset)
    # a preview is of a backfill, however recent its partitions
    engine, audit = manager.engine_of("backfill"), AuditTable(schema=manager.audit_schema)
    with engine.session(who="a preview", read_only=True, report=context.log.info) as session:
        target = target_for(
            manager, key, asset, keys, lambda t, column: kind_of(session, t, column, select)
        )
        table, slices = target.table, target.slices
        told = audit.were_loaded(session, slices)
        loaded = {slice_.name for slice_, was in zip(slices, told, strict=True) if was}
        asked = _asked(context, manager, key, table, config, loaded)
        loads = newest_loads(session, audit, table, slices)
        return preview(session, table, slices, select, asked, loads, audit)


def _asked(
    context: dg.OpExecutionContext,
    manager: DeleteInsertIOManager,
    key: dg.AssetKey,
    table: Table,
    config: PreviewConfig,
    loaded: Collection[str],
) -> Asked:
    """Return the controls that such a backfill would meet at each slice; a new one has spent nothing yet."""
    run = Run("preview", lane="backfill", reason=config.reason.strip() or None)
    paused = Paused(context.instance, [table.qualified, key.to_user_string()], None)

    def reason(slice_: Slice) -> str | None:
        demand = manager.controls.require_reason
        return missing_reason(demand, run.lane, run.reason, lambda: slice_.name in loaded)

    return Asked([reason, retention(run, datetime.now(timezone.utc))], [lambda _: paused.why()])


def _cannot(config: PreviewConfig, why: str, do: str) -> DeclarationError:
    return DeclarationError(_what(config), why, do)


def _what(config: PreviewConfig) -> str:
    return f"{config.table} {config.first} to {config.last} cannot be previewed"


def _summary(found: Preview, config: PreviewConfig) -> str:
    takes = f", about {found.seconds:g} s of warehouse time" if found.seconds is not None else ""
    source = sum(line.source_rows or 0 for line in found.lines)
    reads = ""
    if found.source_bytes is not None:
        reads = f" Reading the source would be billed for {found.source_bytes:,} bytes."
    return (
        f"{found.table}, {config.first} to {config.last}, both included: {len(found.lines)} partitions, of which"
        f" {found.counted('first load')} first loads and {found.counted('rewrite')} rewrites{takes}; as things are,"
        f" {found.counted('refused')} would be refused and {found.counted('held')} held. Rows now {sum(line.rows for line in found.lines)},"
        f" rows in the source {source if any(line.source_rows is not None for line in found.lines) else 'not known'}."
        f"{reads} Nothing was written."
    )


def _metadata(found: Preview, config: PreviewConfig) -> dict[str, Any]:
    columns = (
        "partition",
        "rows",
        "source_rows",
        "duplicates",
        "last_loaded",
        "by",
        "why",
        "would_be",
        "verdict",
    )
    records = [
        dg.TableRecord({name: _shown(getattr(line, name)) for name in columns})
        for line in found.lines[:_SHOWN]
    ]
    schema = dg.TableSchema(columns=[dg.TableColumn(name, "string") for name in columns])
    return {
        "summary": dg.MetadataValue.md(_summary(found, config)),
        "partitions": len(found.lines),
        "first_loads": found.counted("first load"),
        "rewrites": found.counted("rewrite"),
        "refusals": found.counted("refused"),
        "held": found.counted("held"),
        "gaps": dg.MetadataValue.md(", ".join(found.gaps[:200]) or "none"),
        "expected_seconds": found.seconds
        if found.seconds is not None
        else "not known: nothing was loaded yet",
        "expected_cost": found.cost
        if found.cost is not None
        else "not known: the engine tells none",
        **({} if found.source_bytes is None else {"source_bytes": found.source_bytes}),
        "rows_plot": dg.MetadataValue.md(_plot(found)),
        "table": dg.MetadataValue.table(records=records, schema=schema),
        "json": dg.MetadataValue.json(found.as_json()),
    }


def _shown(value: Any) -> str:
    return "" if value is None else str(value)


def _plot(found: Preview) -> str:
    """Return a bar for each partition (or for several, so that they fit): rows now, and rows in the source."""
    step = -(-len(found.lines) // _BARS)
    shown: list[tuple[str, int, int]] = []
    for at in range(0, len(found.lines), step):
        group = found.lines[at : at + step]
        now, then = (
            sum(getattr(one, name) or 0 for one in group) for name in ("rows", "source_rows")
        )
        shown.append((group[0].partition, now, then))
    most = max((max(now, then) for _, now, then in shown), default=0) or 1
    lines = [
        f"{name:>16}  now {now:>10} {_bar(now, most)}\n{'':>16}  new {then:>10} {_bar(then, most)}"
        for name, now, then in shown
    ]
    return "```\n" + "\n".join(lines) + "\n```"


def _bar(value: int, most: int) -> str:
    return "█" * round(40 * value / most)
