"""How far back a source may be trusted: what it no longer holds, or has changed since, cannot be recomputed."""

from __future__ import annotations

from datetime import datetime, timedelta

from backfill_assets.controls.gate import Control
from backfill_assets.slice import Slice
from backfill_assets.writing.run import Run


def retention(run: Run, now: datetime) -> Control:
    """Return the control that refuses slices beyond what their table's source keeps (`Table.source_days`)."""

    def why(slice_: Slice) -> str | None:
        table, window = slice_.table, slice_.window
        if table.source_history is not None or "retention" in run.allows or window is None:
            return None
        days = table.source_days
        if days is None and table.source_mutable and run.lane == "backfill":
            days = 0  # what is live is loaded from the state of the day, which is the one to be had
        if days is None or window.end > now - timedelta(days=days):
            return None
        age = (now - window.end).days
        source = "is changed in place" if table.source_mutable else "keeps its rows"
        until = f" and trusted for {days} days" if table.source_mutable else f" for {days} days"
        return (
            f"its source {source}{until}, and the window ended {age} days ago; declare source_history ('snapshot' or"
            " 'cdc') if the old state is kept somewhere, or launch with the run tags allow=retention and reason=..."
        )

    return why
