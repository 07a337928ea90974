"""The last lines of `make demo`: where the report of its backfill is, which the sensor has written meanwhile."""

from __future__ import annotations

import time

from rich.console import Console

from backfill_assets.demo.servers import Running

_PATIENCE_SECONDS = 60


def show(running: Running, console: Console, backfill: str) -> bool:
    """Print the paths of the report; tell whether there is one."""
    folder = running.place.dagster_home / "storage" / "reports"
    files = [folder / f"{backfill}.{ending}" for ending in ("html", "md")]
    until = time.monotonic() + _PATIENCE_SECONDS
    while not all(file.is_file() for file in files):
        running.must_be_alive()
        if time.monotonic() > until:
            console.print(f"There is no report of backfill {backfill} in {folder}.")
            return False
        time.sleep(0.5)
    console.print("\nThe report of the backfill, to read or to attach to a ticket:")
    for file in files:
        console.print(f"  {file}", soft_wrap=True)
    return True
