"""The end of `make demo`: backfills are paused, one is launched and waits, and a resume lets it go on."""

from __future__ import annotations

import time

from rich.console import Console

from backfill_assets.demo.progress import watch
from backfill_assets.demo.servers import Running
from backfill_assets.errors import BackfillError

_PAUSE, _RESUME = "pause_backfills", "resume_backfills"
_WHO = {"by": "make demo"}
_PATIENCE_SECONDS = 180


def show(running: Running, console: Console, asset: str, partitions: list[str]) -> bool:
    """Pause, launch, wait, resume and watch; tell whether nothing began before the resume and all ended after it."""
    dagster = running.dagster
    console.print("\nThe kill switch: pausing all backfills (job pause_backfills) ...")
    dagster.run_job(_PAUSE, {**_WHO, "reason": "to show the switch"}, running.must_be_alive)
    try:
        backfill = dagster.launch(
            [asset.split(".")],
            partitions,
            "Launched while paused",
            {"reason": "make demo: a backfill that has to wait"},
        )
        waits = _queued(running, backfill)
        time.sleep(3)
        began = [run for run, status in dagster.status(backfill)[1].items() if status != "QUEUED"]
        console.print(
            f"  Backfill {backfill} of {partitions[0]} to {partitions[-1]} waits: {waits} queued, {len(began)} begun."
        )
    finally:
        # a pause must not outlive the demo
        dagster.run_job(_RESUME, {**_WHO, "reason": "shown"}, running.must_be_alive)
    console.print("  Resumed (job resume_backfills).")
    status = watch(dagster, backfill, console, must_be_alive=running.must_be_alive)
    right = not began and status in ("COMPLETED", "COMPLETED_SUCCESS")
    console.print(
        f"  It went on and ended as {status}." if right else f"  That is wrong: {status}."
    )
    return right


def _queued(running: Running, backfill: str) -> int:
    until = time.monotonic() + _PATIENCE_SECONDS
    while time.monotonic() < until:
        running.must_be_alive()
        runs = running.dagster.status(backfill)[1]
        if runs and all(status != "NOT_STARTED" for status in runs.values()):
            return len(runs)
        time.sleep(0.5)
    raise BackfillError(
        f"the backfill {backfill} was not queued",
        f"Dagster's daemon made no run of it within {_PATIENCE_SECONDS} s",
        "Read the daemon's log",
    )
