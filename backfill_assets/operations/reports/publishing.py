"""Where a report goes: two files that are whole or not there, and the page of the asset `backfill_report`."""

from __future__ import annotations

import contextlib
import re
import uuid
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import dagster as dg

from backfill_assets.errors import BackfillError, without_secrets
from backfill_assets.operations.reports import wording
from backfill_assets.operations.reports.html import as_html
from backfill_assets.operations.reports.markdown import as_markdown, escaped, plot, summary
from backfill_assets.operations.reports.values import Report
from backfill_assets.settings import settings, variable

ASSET = dg.AssetKey("backfill_report")
_ROWS = 1000


@dataclass(frozen=True)
class Paths:
    """The two files of a report."""

    markdown: Path
    html: Path

    def __str__(self) -> str:
        return f"{self.markdown} and {self.html.name}"


def folder_of(instance: dg.DagsterInstance) -> Path:
    """Return the folder of the reports: the setting, or a place that lives as long as the instance."""
    told = settings().reports
    if told:
        return Path(told).absolute()
    if instance.is_ephemeral:
        return Path.cwd() / ".backfill_reports"
    return Path(instance.storage_directory()) / "reports"


def publish(instance: dg.DagsterInstance, report: Report) -> tuple[Paths, dict[str, Any]]:
    """Write the files, show the report on its asset's page, and return the paths and what is shown."""
    folder = folder_of(instance)
    # an id becomes a name and nothing more, whoever made it up
    name = re.sub(r"[^A-Za-z0-9_-]", "_", report.backfill)[:100]
    paths = Paths(folder / f"{name}.md", folder / f"{name}.html")
    write(paths.markdown, as_markdown(report))
    write(paths.html, as_html(report))
    metadata = metadata_of(report, paths)
    instance.report_runless_asset_event(
        dg.AssetMaterialization(ASSET, description=report.headline, metadata=metadata)
    )
    return paths, metadata


def write(path: Path, lines: Iterable[str]) -> None:
    """Replace the file by `lines`; whoever reads meanwhile sees the old one or the new one."""
    new = path.with_name(f".{path.name}.{uuid.uuid4().hex}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with new.open("w", encoding="utf-8", errors="backslashreplace") as file:
            file.writelines(f"{line}\n" for line in lines)
        new.replace(path)
    except OSError as error:
        raise BackfillError(
            f"the report {path} could not be written",
            str(error),
            f"Make room or set {variable('reports')} to a folder that this process may write to",
        ) from None
    finally:
        with contextlib.suppress(OSError):  # it is there only where the replacement has failed
            new.unlink()


def metadata_of(report: Report, paths: Paths) -> dict[str, Any]:
    """Return what the asset's page and the run's page show."""
    totals, counted = report.totals, report.counted
    known = {
        "rows_before": totals.before,
        "rows_after": totals.after,
        "rows_difference": totals.difference,
        "source_rows": totals.source,
        "seconds": totals.seconds,
        "cost": totals.cost,
    }
    plots = [f"**{escaped(table.name)}**\n\n{plot(table.lines)}" for table in report.tables]
    return {
        "summary": dg.MetadataValue.md(summary(report)),
        "backfill": report.backfill,
        "level": report.level,
        "is_interim": not report.has_ended,
        "markdown": dg.MetadataValue.path(str(paths.markdown)),
        "html": dg.MetadataValue.path(str(paths.html)),
        "partitions": sum(counted.values()),
        **{name.replace(" ", "_"): counted[name] for name in _COUNTED},
        "wrong_partitions": report.wrong,
        "failed_checks": report.checked["failed"],
        "failed_runs": len(report.failed_runs),
        "off_source": report.off,
        **{name: value for name, value in known.items() if value is not None},
        "rows_plot": dg.MetadataValue.md("\n\n".join(plots) or "nothing"),
        "table": _table(report),
    }


_COUNTED = ("done", "skipped", "refused", "failed", "cancelled", "not reached", "running")


def _table(report: Report) -> dg.TableMetadataValue:
    titles = [title for title, _, _ in wording.COLUMNS]
    records: list[dg.TableRecord] = []
    for table, line in report.lines:
        if len(records) == _ROWS:
            break
        cells = {title: without_secrets(show(line)) for title, show, _ in wording.COLUMNS}
        records.append(dg.TableRecord({"table": table.name, **cells}))
    columns = [dg.TableColumn(name, "string") for name in ("table", *titles)]
    return dg.MetadataValue.table(records=records, schema=dg.TableSchema(columns=columns))
