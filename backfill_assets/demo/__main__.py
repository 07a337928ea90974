"""`python -m backfill_assets.demo [sales | flights | dbt | replay | cutover | serve]`."""

from __future__ import annotations

import argparse
import os
import signal
import sys
import time
from datetime import date
from pathlib import Path

from rich.console import Console

from backfill_assets.demo import cutover_demo, flights_demo, replay_demo, sales_demo
from backfill_assets.demo.place import Place, prepared
from backfill_assets.demo.servers import servers
from backfill_assets.errors import BackfillError
from backfill_assets.payments import stream
from backfill_assets.sales.source import FIRST_DAY, LAST_DAY, prepare


def main(arguments: list[str] | None = None) -> int:
    """Run a demo and return the process's exit status."""
    parser = argparse.ArgumentParser(prog="python -m backfill_assets.demo", description=__doc__)
    parser.add_argument(
        "what",
        nargs="?",
        choices=["sales", "flights", "dbt", "replay", "cutover", "serve"],
        default="sales",
    )
    parser.add_argument(
        "--home",
        type=Path,
        default=Path(".demo"),
        help="the folder of warehouse, logs and Dagster's home",
    )
    parser.add_argument("--port", type=int, help="the UI's port; a free one if left out")
    parser.add_argument(
        "--first",
        type=date.fromisoformat,
        default=date(2026, 5, 1),
        help="first day of the sales demo",
    )
    parser.add_argument(
        "--last",
        type=date.fromisoformat,
        default=date(2026, 5, 31),
        help="last day, which is loaded too",
    )
    given = parser.parse_args(arguments)
    if not FIRST_DAY <= given.first <= given.last <= LAST_DAY:
        parser.error(
            f"the sample has the days {FIRST_DAY} to {LAST_DAY}; give --first and --last in that order"
        )
    console = Console(highlight=False, width=None if sys.stdout.isatty() else 150)
    # a closed terminal must not leave servers behind, unless nohup says that it may
    for ending in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(ending) != signal.SIG_IGN:
            signal.signal(ending, _end)
    try:
        place = prepared(given.home)
        if given.what == "serve":
            return serve(place, console, given.port)
        if given.what == "dbt":
            # every other demo would pay for importing dbt's side
            from backfill_assets.demo import dbt_demo

            right = dbt_demo.run(place, console)
        elif given.what == "flights":
            right = flights_demo.run(place, console)
        elif given.what == "replay":
            right = replay_demo.run(place, console)
        elif given.what == "cutover":
            right = cutover_demo.run(place, console)
        else:
            right = sales_demo.run(place, console, given.first, given.last)
    except BackfillError as error:
        console.print(f"{error}", style="red")
        return 1
    except KeyboardInterrupt:
        console.print("Stopped.")
        return 130
    console.print("To look at it in the UI: make dev")
    return 0 if right else 1


def serve(place: Place, console: Console, port: int | None) -> int:
    """Keep the UI up until Ctrl-C."""
    console.print("Starting Dagster's webserver and daemon ...")
    prepare(place.engine(), console.print)
    stream.write(place.events / "payments")
    with servers(place, port) as running:
        console.print(f"The UI is at {running.url} (process {os.getpid()}). Ctrl-C stops it.")
        while True:
            running.must_be_alive()
            time.sleep(1)


def _end(*_: object) -> None:
    raise KeyboardInterrupt


if __name__ == "__main__":
    sys.exit(main())
