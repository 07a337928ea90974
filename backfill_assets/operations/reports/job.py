"""The job `report_backfill`: writes the report of one backfill, ended or under way."""

from typing import Any

import dagster as dg
from pydantic import Field

from backfill_assets.io_managers.reporting import as_failure
from backfill_assets.operations.reports.gathering import Reader
from backfill_assets.operations.reports.publishing import publish


class ReportConfig(dg.Config):
    """Which backfill."""

    backfill: str = Field(description="The backfill's id, as its page shows it.")


def report_job(io_manager_key: str = "io_manager") -> dg.JobDefinition:
    """Return the job; it reads the warehouse through the IO manager of that key."""

    @dg.op(
        name="report_backfill_op",
        required_resource_keys={io_manager_key},
        out=dg.Out(io_manager_key="report_out"),
    )
    def report_backfill_op(context: dg.OpExecutionContext, config: ReportConfig) -> str:
        """Write the report, and show it on this run's page and on that of the asset backfill_report."""
        with as_failure():
            manager: Any = getattr(context.resources, io_manager_key)
            engine = manager.engine_of("backfill")
            reader = Reader(
                context.instance, context.repository_def, manager, io_manager_key, engine
            )
            report = reader.report(config.backfill.strip())
            paths, metadata = publish(context.instance, report)
        context.log.info(f"{report.headline} Written to {paths}.")
        context.add_output_metadata(metadata)
        return str(paths.markdown)

    @dg.job(
        name="report_backfill",
        executor_def=dg.in_process_executor,
        resource_defs={"report_out": dg.mem_io_manager},
        tags={"dagster/priority": "100"},
    )
    def report_backfill() -> None:
        """What a backfill did to each partition, what it did not, and how to go on: as Markdown and HTML."""
        report_backfill_op()

    return report_backfill
