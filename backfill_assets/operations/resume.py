"""The job `resume_backfill`: what a backfill had planned and has not done is launched again, and nothing else."""

from collections.abc import Sequence
from typing import Any

import dagster as dg
from dagster._core.execution.backfill import BulkActionStatus
from dagster._core.storage.dagster_run import NOT_FINISHED_STATUSES
from pydantic import Field

from backfill_assets.errors import DeclarationError, Refused
from backfill_assets.io_managers.reporting import as_failure
from backfill_assets.operations.done import Family, done_of, family_of, left_of
from backfill_assets.operations.launching import Wanted, is_going
from backfill_assets.operations.planned import Plan, planned
from backfill_assets.operations.relaunching import relaunch
from backfill_assets.slice import WHOLE

_SHOWN = 1000
_COLUMNS = ("asset", "partition", "what_happened")


class ResumeConfig(dg.Config):
    """Which backfill, and who resumes it."""

    backfill: str = Field(description="The id of the backfill that did not do everything.")
    by: str = Field(description="Who you are.")
    reason: str = Field(default="", description="Why; by default the reason of that backfill.")
    dry_run: bool = Field(default=False, description="Only tell what is left.")


def resume_job(io_manager_key: str = "io_manager") -> dg.JobDefinition:
    """Return the job; it reads the audit through the IO manager of that key."""

    @dg.op(
        name="resume_backfill_op",
        required_resource_keys={io_manager_key},
        out=dg.Out(io_manager_key="resume_out"),
    )
    def resume_backfill_op(context: dg.OpExecutionContext, config: ResumeConfig) -> dict:
        """Compare the plan with what was committed, and launch the rest as a backfill of its own."""
        with as_failure():
            manager: Any = getattr(context.resources, io_manager_key)
            told = resumed(context, manager, io_manager_key, config)
        context.log.info(told["summary"])
        context.add_output_metadata(_metadata(told))
        return told

    @dg.job(
        name="resume_backfill",
        executor_def=dg.in_process_executor,
        resource_defs={"resume_out": dg.mem_io_manager},
        tags={"dagster/priority": "100"},
    )
    def resume_backfill() -> None:
        """Launch what a failed or cancelled backfill has left: exactly those partitions of those assets."""
        resume_backfill_op()

    return resume_backfill


def resumed(
    context: dg.OpExecutionContext, manager: Any, io_manager_key: str, config: ResumeConfig
) -> dict[str, Any]:
    """Return what is left of a backfill, and what was launched for it, as plain values."""
    backfill = context.instance.get_backfill(config.backfill)
    if backfill is None:
        raise _cannot(config, "there is no backfill with that id", "Copy it from its page")
    if not config.by.strip():
        raise _cannot(config, "nobody says who resumes it", "Give 'by', which is kept in the audit")
    family = family_of(context.instance, backfill)
    _must_have_ended(config, family)
    plan = planned(context.instance, context.repository_def, backfill)
    done = done_of(
        context.instance, context.repository_def, manager, io_manager_key, family, plan.assets
    )
    left, ops = left_of(plan.assets, done), _left_of_ops(family, plan)
    launched = (
        [] if config.dry_run else relaunch(context, backfill, left, ops, config.by, config.reason)
    )
    return _told(config, plan, family, left, ops, launched)


def _must_have_ended(config: ResumeConfig, family: Family) -> None:
    for backfill in family.backfills:
        if is_going(backfill):
            which = (
                "it"
                if backfill.backfill_id == config.backfill
                else f"backfill {backfill.backfill_id}, which resumes it,"
            )
            cancels = backfill.status == BulkActionStatus.CANCELING
            raise Refused(
                f"backfill {config.backfill} was not resumed",
                f"{which} is being cancelled" if cancels else f"{which} is still running",
                "Wait until it is"
                if cancels
                else "Let it end, or cancel it on its page, then resume",
            )
    under_way = [run.run_id[:8] for run in family.runs if run.status in NOT_FINISHED_STATUSES]
    if under_way:
        raise Refused(
            f"backfill {config.backfill} was not resumed",
            f"{len(under_way)} of its runs have not ended ({', '.join(under_way[:5])})",
            "Let them end, or terminate them on their pages, then resume",
        )


def _left_of_ops(family: Family, plan: Plan) -> list[str]:
    """Return the partitions of a job without assets that have no run which succeeded."""
    seen = {
        run.tags.get("dagster/partition")
        for run in family.runs
        if run.status == dg.DagsterRunStatus.SUCCESS
    }
    return [name for name in plan.op_job if name not in seen]


def _told(
    config: ResumeConfig,
    plan: Plan,
    family: Family,
    left: Wanted,
    ops: Sequence[str],
    launched: Sequence[str],
) -> dict[str, Any]:
    lines = [
        {"asset": key.to_user_string(), "partition": name, "what_happened": happened}
        for key, names in left.items()
        for name, happened in (
            family.last_seen(key, names) if names is not None else {WHOLE: "not done"}
        ).items()
    ]
    lines += [
        {"asset": "", "partition": name, "what_happened": happened}
        for name, happened in family.last_seen(None, ops).items()
    ]
    asked = sum(len(n) if n is not None else 1 for n in plan.assets.values()) + len(plan.op_job)
    return {
        "backfill": config.backfill,
        "launched": list(launched),
        "planned": asked + sum(len(names) for names in plan.gone.values()),
        "left": len(lines),
        "gone": {asset: list(names) for asset, names in plan.gone.items()},
        "lines": lines,
        "summary": _summary(config, asked, len(lines), plan, launched),
    }


def _summary(
    config: ResumeConfig, asked: int, left: int, plan: Plan, launched: Sequence[str]
) -> str:
    gone = "; ".join(f"{asset} {', '.join(names[:20])}" for asset, names in plan.gone.items())
    what = f"Backfill {config.backfill}: {asked - left} of {asked} partitions are done, {left} are left."
    if not left:
        what = f"Nothing of backfill {config.backfill} is left: all {asked} partitions are done."
    elif config.dry_run:
        what += " Nothing was launched (dry_run)."
    else:
        what += f" Launched: {', '.join(launched)}."
    if gone:
        what += f" Planned then and not there any more, so left out: {gone}."
    return what


def _metadata(told: dict[str, Any]) -> dict[str, Any]:
    schema = dg.TableSchema(columns=[dg.TableColumn(name, "string") for name in _COLUMNS])
    records = [dg.TableRecord(line) for line in told["lines"][:_SHOWN]]
    return {
        "summary": dg.MetadataValue.md(told["summary"]),
        "planned": told["planned"],
        "left": told["left"],
        "launched": dg.MetadataValue.md(", ".join(told["launched"]) or "nothing"),
        "table": dg.MetadataValue.table(records=records, schema=schema),
        "json": dg.MetadataValue.json(told),
    }


def _cannot(config: ResumeConfig, why: str, do: str) -> DeclarationError:
    return DeclarationError(f"backfill {config.backfill!r} was not resumed", why, do)
