"""The job `verify_range`: every check over any range of partitions, without writing, and what to backfill then."""

from datetime import datetime, timezone
from typing import Any

import dagster as dg
from pydantic import Field

from backfill_assets.checks.verdicts import checks_of, verdicts
from backfill_assets.errors import DeclarationError
from backfill_assets.io_managers.delete_insert import DeleteInsertIOManager
from backfill_assets.io_managers.kinds import kind_of
from backfill_assets.io_managers.reporting import as_failure
from backfill_assets.operations.launching import command, request_backfill, selection
from backfill_assets.operations.location import asset_named
from backfill_assets.operations.ranges import keys_between, partitions_of_asset, target_for
from backfill_assets.operations.verifying import Verified, verified
from backfill_assets.writing import AuditTable

_SHOWN = 1000
_COLUMNS = ("partition", "check", "severity", "expected", "found", "why", "sql")


class VerifyConfig(dg.Config):
    """A range of one table's partitions; both ends belong to it."""

    table: str = Field(description="The table (schema.table) or the asset's key.")
    first: str = Field(
        default="",
        description="The first partition, as Dagster prints it; empty: the first one that was ever loaded.",
    )
    last: str = Field(
        default="",
        description="The last partition, which is looked at too; empty: the last there is.",
    )
    checks: list[str] = Field(
        default=[], description="Only these checks, by name; empty: all that the table has."
    )
    launch: bool = Field(
        default=False, description="Request the backfill of the partitions that one can mend."
    )
    reason: str = Field(default="", description="Why; by default the failed checks are told.")
    by: str = Field(default="", description="Who asks for it.")
    fail: bool = Field(
        default=True, description="Whether the run fails when a check does, so that it is noticed."
    )


def verify_job(io_manager_key: str = "io_manager") -> dg.JobDefinition:
    """Return the job; it reads through the IO manager of that key."""

    @dg.op(
        name="verify_range_op",
        required_resource_keys={io_manager_key},
        out=dg.Out(io_manager_key="verify_out"),
    )
    def verify_range_op(context: dg.OpExecutionContext, config: VerifyConfig) -> dict:
        """Write nothing: ask every check of each partition of the range."""
        with as_failure():
            manager: Any = getattr(context.resources, io_manager_key)
            found, wanted = verified_range(context, manager, config)
            backfill = _launch(context, config, found) if config.launch else None
        again = _command(context.repository_def, config)
        summary = _summary(found, wanted, again, backfill)
        metadata = _metadata(found, wanted, again, backfill)
        context.log.info(summary)
        if config.fail and not found.is_right:
            raise dg.Failure(summary, metadata=metadata, allow_retries=False)
        context.add_output_metadata({"summary": dg.MetadataValue.md(summary), **metadata})
        return found.as_json()

    @dg.job(
        name="verify_range",
        executor_def=dg.in_process_executor,
        resource_defs={"verify_out": dg.mem_io_manager},
        tags={"dagster/priority": "50"},
    )
    def verify_range() -> None:
        """Ask every check of a range of partitions again; writes nothing. Dates are inclusive."""
        verify_range_op()

    return verify_range


def verified_range(
    context: dg.OpExecutionContext, manager: DeleteInsertIOManager, config: VerifyConfig
) -> tuple[Verified, str]:
    """Return what is wrong in a range of an asset of the location, and what to backfill as the UI takes it."""
    what = f"{config.table} cannot be verified"
    key, asset = asset_named(context.repository_def, config.table, what)
    definition: Any = partitions_of_asset(asset, key)
    if definition is None:
        raise DeclarationError(what, "its asset has no partitions", "Name one that has")
    first, last = config.first or None, config.last or None
    keys = keys_between(definition, first, last, what, context.instance)
    now, audit = datetime.now(timezone.utc), AuditTable(schema=manager.audit_schema)
    engine = manager.engine_of("backfill")
    with engine.session(who="verify_range", read_only=True, report=context.log.info) as session:
        target = target_for(
            manager, key, asset, keys, lambda table, column: kind_of(session, table, column, None)
        )
        _refuse_unknown(config, checks_of(target.table), what)
        due = [s for s in target.slices if s.window is None or s.window.end <= now]
        # without it nobody could tell a gap from a partition that is there
        wanted = {*config.checks, "missing_partitions"} if config.checks else None
        looked = verdicts(
            session, target.table, due, audit, now, None if wanted is None else sorted(wanted)
        )
        known = context.instance.get_materialized_partitions(key)
        found = verified(
            target.table.qualified, looked, sorted(known), from_first_load=not config.first
        )
    return found, selection(definition, found.to_backfill) if found.to_backfill else ""


def _launch(context: dg.OpExecutionContext, config: VerifyConfig, found: Verified) -> str | None:
    """Request the backfill of what a backfill can mend, and return its id; None where there is nothing to do."""
    if not found.to_backfill:
        return None
    key, _ = asset_named(context.repository_def, config.table, config.table)
    failed = ", ".join(f"{check} {count}" for check, count in found.failed.items())
    return request_backfill(
        context.instance,
        context.repository_def.asset_graph,
        {key: found.to_backfill},
        {
            "reason": config.reason.strip() or f"verify_range found: {failed}",
            "launched_by": config.by or "verify_range",
        },
        title="What a verification found",
    )


def _command(repository: Any, config: VerifyConfig) -> str:
    asked = {"table": config.table, "first": config.first, "last": config.last, "launch": True}
    given = {name: value for name, value in asked.items() if value}
    return command(repository, "verify_range", given)


def _refuse_unknown(config: VerifyConfig, known: list[str], what: str) -> None:
    unknown = [name for name in config.checks if name not in known]
    if unknown:
        raise DeclarationError(
            what, f"it has no check {unknown[0]!r}", f"Choose from {', '.join(known)}"
        )


def _summary(found: Verified, wanted: str, again: str, backfill: str | None) -> str:
    first, last = (found.partitions or ["none"])[0], (found.partitions or ["none"])[-1]
    begun = f"{found.table}, {first} to {last}, both included: {len(found.partitions)} partitions, {found.rows:,} rows"
    notes = (
        f" {len(found.unknown_to_dagster)} partitions have rows that Dagster never materialized."
        if found.unknown_to_dagster
        else ""
    )
    if found.is_right:
        return f"{begun}, and every check passed.{notes} No table was written."
    failed = ", ".join(f"{check} {count}" for check, count in found.failed.items())
    gaps = ""
    if found.never_loaded or found.gone:
        gaps = f" {len(found.never_loaded)} were never loaded, {len(found.gone)} are gone though Dagster materialized them."
    do = ""
    if backfill:
        do = f" Backfill {backfill} of {wanted} was requested."
    elif wanted:
        do = f" To backfill {wanted}, type that into Materialize in the UI, or: {again}"
    return f"{begun}; failed checks: {failed}.{gaps}{do}{notes} No table was written."


def _metadata(found: Verified, wanted: str, again: str, backfill: str | None) -> dict[str, Any]:
    records = [
        dg.TableRecord({name: str(getattr(wrong, name)) for name in _COLUMNS})
        for wrong in found.wrong[:_SHOWN]
    ]
    schema = dg.TableSchema(columns=[dg.TableColumn(name, "string") for name in _COLUMNS])
    more = {"command": again} if wanted else {}
    more |= {"backfill": backfill} if backfill else {}
    return {
        **more,
        "partitions": len(found.partitions),
        "rows": found.rows,
        "failed_checks": sum(found.failed.values()),
        "never_loaded": dg.MetadataValue.json(found.never_loaded),
        "gone": dg.MetadataValue.json(found.gone),
        "unknown_to_dagster": dg.MetadataValue.json(found.unknown_to_dagster),
        "to_backfill": wanted or "nothing",
        "wrong": dg.MetadataValue.table(records=records, schema=schema),
        "json": dg.MetadataValue.json(found.as_json()),
    }
