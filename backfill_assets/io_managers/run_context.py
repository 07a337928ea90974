"""Who launched a run and why, read from its tags."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timezone

import dagster as dg

from backfill_assets.writing.run import Run

BACKFILL_TAG = "dagster/backfill"


def run_of(context: dg.OutputContext) -> Run:
    """Return the run as the audit will remember it.

    Tags: `reason`, `ticket`, `allow` (`empty`, `shrink`, separated by commas), `launched_by`, `lane`, `strategy`.
    The source of a frame counts as read when its step started.
    """
    step = step_of(context)
    tags: Mapping[str, str] = step.dagster_run.tags if step is not None else {}
    lane = tags.get("lane") or ("backfill" if BACKFILL_TAG in tags else "live")
    spec = context.asset_spec if step is not None and context.has_asset_key else None
    return Run(
        run_id=step.run_id if step is not None else "unlaunched",
        lane="backfill" if lane == "backfill" else "live",
        strategy=tags.get("strategy", "recompute"),
        backfill_id=tags.get(BACKFILL_TAG),
        reason=tags.get("reason"),
        ticket=tags.get("ticket"),
        launched_by=tags.get("launched_by") or tags.get("user"),
        code_version=spec.code_version if spec is not None else None,
        source_read_at=_step_started(step) if step is not None else None,
        allows=frozenset(part.strip() for part in tags.get("allow", "").split(",") if part.strip()),
    )


def step_of(context: dg.OutputContext):
    try:
        return context.step_context
    except Exception:  # a context built by hand has no step
        return None


def _step_started(step) -> datetime | None:
    """Return when this attempt at the step began; a retry reads its source again."""
    began = {dg.DagsterEventType.STEP_START, dg.DagsterEventType.STEP_RESTARTED}
    # the last one is this step's, unless others run beside it
    for limit in (1, None):
        records = step.instance.get_records_for_run(
            step.run_id, of_type=began, limit=limit, ascending=False
        ).records
        for record in records:
            if record.event_log_entry.step_key == step.step.key:
                return datetime.fromtimestamp(record.event_log_entry.timestamp, timezone.utc)
    return None
