"""Why a slice is rewritten: found in the run's tags, its backfill's title or its configuration, and demanded."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal

import dagster as dg

from backfill_assets.controls.lanes import BACKFILL
from backfill_assets.writing.run import Lane

REASON = "reason"
Demand = Literal["backfill", "always", "never"]


def reason_of(
    instance: dg.DagsterInstance, tags: Mapping[str, str], run_config: Mapping[str, Any]
) -> str | None:
    """Return the reason that whoever launched the run has given, None where there is none."""
    told = tags.get(REASON, "").strip() or _configured(run_config)
    if told or BACKFILL not in tags:
        return told
    backfill = instance.get_backfill(tags[BACKFILL])
    if backfill is None:
        return None
    return (backfill.title or "").strip() or (backfill.description or "").strip() or None


def missing_reason(
    demand: Demand, lane: Lane, reason: str | None, loaded_before: Callable[[], bool]
) -> str | None:
    """Return why the run may not go on without a reason, None when it may; `loaded_before` is asked only if it counts."""
    if reason or demand == "never":
        return None
    if demand == "always":
        return f"no reason is given, and every run needs one here; {HOW}"
    if lane == "backfill" and loaded_before():
        return f"no reason is given, and it was loaded before; {HOW}"
    return None


HOW = (
    f"add the tag '{REASON}' with a sentence (in the UI: Materialize, Add tags; from a terminal: --tags"
    f' \'{{"{REASON}": "..."}}\'), or give the backfill a title'
)


def _configured(run_config: Mapping[str, Any]) -> str | None:
    """Return `reason` from the configuration of any op of the run."""
    ops = run_config.get("ops") or {}
    for op in ops.values() if isinstance(ops, Mapping) else ():
        config = op.get("config") if isinstance(op, Mapping) else None
        told = config.get(REASON) if isinstance(config, Mapping) else None
        if isinstance(told, str) and told.strip():
            return told.strip()
    return None
