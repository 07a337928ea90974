"""Watching a backfill until Dagster calls it finished."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable

from rich.console import Console

from backfill_assets.demo.graphql import Dagster
from backfill_assets.errors import BackfillError

_OVER = ("COMPLETED", "COMPLETED_SUCCESS", "COMPLETED_FAILED", "FAILED", "CANCELED")
_POLL_SECONDS = 1.0


def watch(
    dagster: Dagster,
    backfill: str,
    console: Console,
    limit_seconds: float = 1800,
    must_be_alive: Callable[[], None] = lambda: None,
) -> str:
    """Show the runs as they go, and return the backfill's last status; `must_be_alive` raises to give up."""
    began, shown = time.monotonic(), ""
    with console.status("Waiting for Dagster's daemon to pick the backfill up ...") as spinner:
        while True:
            must_be_alive()
            status, runs = dagster.status(backfill)
            line = _line(status, runs)
            if line != shown:
                shown = line
                spinner.update(line)
                if not console.is_terminal:
                    console.print(f"{time.monotonic() - began:4.0f} s  {line}")
            if status in _OVER:
                _tell_failures(dagster, runs, console)
                return status
            if time.monotonic() - began > limit_seconds:
                raise BackfillError(
                    f"the backfill {backfill} was not finished after {limit_seconds:.0f} s",
                    f"it stands at {line}",
                    "Read the daemon's log",
                )
            time.sleep(_POLL_SECONDS)


def _line(status: str, runs: dict[str, str]) -> str:
    if not runs:
        return "Waiting for Dagster's daemon to pick the backfill up ..."
    counts = ", ".join(
        f"{number} {name.lower()}" for name, number in sorted(Counter(runs.values()).items())
    )
    running = any(state not in ("SUCCESS", "FAILURE", "CANCELED") for state in runs.values())
    return f"{len(runs)} runs: {counts}" + (
        "" if running or status in _OVER else "; waiting for Dagster to close it"
    )


def _tell_failures(dagster: Dagster, runs: dict[str, str], console: Console) -> None:
    for run, state in runs.items():
        if state == "FAILURE":
            console.print(f"Run {run[:8]} failed. {dagster.failure(run)}")
