"""What is left of a run that is executed again from failure: the slices that the runs before it did not commit."""

from __future__ import annotations

from typing import Any

from backfill_assets.io_managers.partitions import Target
from backfill_assets.io_managers.sessions import Sessions
from backfill_assets.writing import AuditTable, Load

_FROM_FAILURE = "dagster/is_resume_retry"


def written_before(
    step: Any, target: Target, audit: AuditTable, sessions: Sessions
) -> dict[str, Load]:
    """Return by name the slices that are done already: those that others of the chain that this run takes up committed."""
    if step is None or step.dagster_run.tags.get(_FROM_FAILURE) != "true":
        return {}
    return audit.written_by(sessions.get(), _ancestors(step), target.table)


def _ancestors(step: Any) -> list[str]:
    found: list[str] = []
    parent = step.dagster_run.parent_run_id
    while parent is not None and parent not in found:
        found.append(parent)
        run = step.instance.get_run_by_id(parent)
        parent = run.parent_run_id if run is not None else None
    return found
