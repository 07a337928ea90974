"""What is left of a run that is executed again from failure: the slices that the runs before it did not commit."""

from __future__ import annotations

from typing import Any

from backfill_assets.io_managers.partitions import Target
from backfill_assets.io_managers.sessions import Sessions
from backfill_assets.slice import Slice
from backfill_assets.writing import AuditTable

_FROM_FAILURE = "dagster/is_resume_retry"


def left_over(step: Any, target: Target, audit: AuditTable, sessions: Sessions) -> list[Slice]:
    """Return the slices to write: all of them, except where this run takes up what others of its chain have begun."""
    if step is None or step.dagster_run.tags.get(_FROM_FAILURE) != "true":
        return target.slices
    written = audit.written_by(sessions.get(), _ancestors(step), target.table)
    return [slice_ for slice_ in target.slices if slice_.name not in written]


def _ancestors(step: Any) -> list[str]:
    found: list[str] = []
    parent = step.dagster_run.parent_run_id
    while parent is not None and parent not in found:
        found.append(parent)
        run = step.instance.get_run_by_id(parent)
        parent = run.parent_run_id if run is not None else None
    return found
