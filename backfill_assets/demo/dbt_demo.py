"""`make demo-dbt`: a country column comes to `fct_orders`, and 90 days of it are filled through the run queue."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Sequence
from dataclasses import replace
from datetime import date, datetime, timedelta, timezone
from typing import Any

from rich.console import Console
from rich.table import Table as Grid

from backfill_assets.dbt import raw
from backfill_assets.dbt.environment import dbt_environment
from backfill_assets.dbt.place import DBT, PROJECT
from backfill_assets.demo.place import ROOT, Place
from backfill_assets.demo.progress import watch
from backfill_assets.demo.servers import servers
from backfill_assets.engines import Session, open_engine
from backfill_assets.errors import BackfillError

FIRST, LAST = date(2026, 3, 1), date(2026, 5, 29)
_JUNE = datetime(2026, 6, 1, tzinfo=timezone.utc)
# whole days since 1970 by arithmetic on seconds: the model's own SQL says it with a cast in a time zone
_DAY = "CAST(DATE '1970-01-01' + CAST(floor(extract(epoch FROM ordered_at) / 86400) AS INTEGER) AS DATE)"
_RAW = f"""SELECT {_DAY}, count(*), sum(quantity * unit_price) FROM raw.orders
  JOIN raw.products USING (product_id) WHERE status = 'confirmed' GROUP BY 1"""
_FACTS = (
    "SELECT order_date, count(*), sum(amount), count(country) FROM analytics.fct_orders GROUP BY 1"
)
# everything but the new column, as text, so that any change of any value shows
_OTHERS = """SELECT CAST(order_date AS TEXT), order_id, CAST(ordered_at AS TEXT), customer_id, product_id, quantity,
  CAST(amount AS TEXT) FROM analytics.fct_orders ORDER BY order_id"""
_COUNTRIES = "SELECT customer_id, ordered_at, country FROM analytics.fct_orders"
_NAIVE = """SELECT count(*) FROM analytics.fct_orders AS f JOIN raw.customers AS today
  ON today.customer_id = f.customer_id WHERE today.country <> f.country"""


def run(place: Place, console: Console, first: date = FIRST, last: date = LAST) -> bool:
    """Fill the new column for the days `first` to `last`, and tell whether every one of them is right."""
    days = days_between(first, last)
    before = without_country(place, console, days)
    console.print("Starting Dagster's webserver and daemon ...")
    both = replace(place, workspace=ROOT / "workspace_dbt.yaml")
    with servers(both) as running:
        console.print(f"  They answer at {running.url}")
        backfill = running.dagster.launch(
            [["analytics", "fct_orders"]],
            days,
            "Country for every order",
            {"reason": "make demo-dbt: a country column was added"},
        )
        console.print(
            f"Launched backfill {backfill}: {len(days)} days of analytics.fct_orders, a dbt invocation for each 30."
        )
        status = watch(running.dagster, backfill, console, must_be_alive=running.must_be_alive)
    right = report(place, console, backfill, days, before)
    return right and status in ("COMPLETED", "COMPLETED_SUCCESS")


def days_between(first: date, last: date) -> list[str]:
    """Return the days from `first` to `last`, both included."""
    return [(first + timedelta(days=n)).isoformat() for n in range((last - first).days + 1)]


def without_country(place: Place, console: Console, days: Sequence[str]) -> list[tuple[Any, ...]]:
    """Make sources, the dimension before and after the moves, and the fact without the column; return what it holds."""
    engine = place.engine()
    orders = raw.prepare(engine, console.print)
    console.print(f"raw.orders holds {orders:,} orders; raw.customers is as it was on 1 March.")
    _dbt(place, console, "build", "--select", "dim_customers")
    raw.set_customers(engine, _JUNE, console.print)
    console.print(
        f"{len(raw.moves())} of {raw.CUSTOMERS} customers moved to another country in April, and were changed in place."
    )
    _dbt(place, console, "build", "--select", "dim_customers")
    told = {
        "start": days[0],
        "end": str(date.fromisoformat(days[-1]) + timedelta(days=1)),
        "with_country": False,
        "reason": "make demo-dbt: as it was before the column",
    }
    _dbt(place, console, "run", "--select", "fct_orders", "--vars", json.dumps(told))
    before = _rows(place, _OTHERS)
    console.print(f"analytics.fct_orders holds {len(before):,} rows, without a country.")
    return before


def report(
    place: Place,
    console: Console,
    backfill: str,
    days: Sequence[str],
    before: list[tuple[Any, ...]],
) -> bool:
    """Print a line for each day, what a join with today's customers would say, and the audit; tell whether all is right."""
    with open_engine(place.url).session(read_only=True, report=console.print) as session:
        facts, source = _by_day(session, _FACTS), _by_day(session, _RAW)
        after, countries = session.fetch(_OTHERS), session.fetch(_COUNTRIES)
        ((differing,),) = session.fetch(_NAIVE)
        history = session.fetch(
            "SELECT count(*), count(DISTINCT run_id), min(lane), sum(rows_after), min(reason)"
            f" FROM backfill.load_audit WHERE backfill_id = '{backfill}' AND outcome = 'committed'"
        )[0]
    grid = Grid("day", title="analytics.fct_orders", box=None, title_justify="left", pad_edge=False)
    for name in ("rows", "with a country", "rows of raw"):
        grid.add_column(name, justify="right")
    grid.add_column("verdict")
    wrong = 0
    for day in days:
        rows, amount, filled = facts.get(day, (0, 0, 0))
        wanted, total = source.get(day, (0, 0))
        is_right = (rows, amount, filled) == (wanted, total, rows)
        wrong += not is_right
        grid.add_row(
            day, f"{rows:,}", f"{filled:,}", f"{wanted:,}", "right" if is_right else "WRONG"
        )
    console.print(grid)
    # told by the generator, which knows when each customer moved, and not by the dimension
    misplaced = sum(
        country != raw.country_at(customer, _aware(at)) for customer, at, country in countries
    )
    console.print(
        f"{misplaced} of {len(countries):,} orders have another country than their customer had that moment."
    )
    console.print(
        f"A join with today's raw.customers would give {differing:,} orders another country."
    )
    same = "no value of" if before == after else "SOMETHING IN"
    console.print(f"Beside the new column {same} {len(after):,} rows has changed.")
    loads, runs, lane, written, reason = history
    console.print(
        f"backfill.load_audit: {loads} days by {runs} runs in lane {lane}, {written:,} rows, because: {reason}"
    )
    right = not wrong and not misplaced and before == after and differing > 0 and loads == len(days)
    console.print("Every day is right." if right else f"{wrong} of {len(days)} days are wrong.")
    return right


def _dbt(place: Place, console: Console, *arguments: str) -> None:
    """Run plain dbt, as a person would."""
    console.print(f"$ dbt {' '.join(arguments)}")
    work = place.folder / "dbt"
    work.mkdir(parents=True, exist_ok=True)
    done = subprocess.run(
        [
            DBT,
            "--quiet",
            *arguments,
            "--project-dir",
            str(PROJECT),
            "--profiles-dir",
            str(PROJECT),
            "--target-path",
            str(work),
            "--log-path",
            str(work),
        ],
        env={**os.environ, **dbt_environment(place.url)},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise BackfillError(
            f"dbt {arguments[0]} failed",
            " ".join(done.stdout.split())[-600:] or "it said nothing",
            f"Read {work / 'dbt.log'}",
        )


def _rows(place: Place, sql: str) -> list[tuple[Any, ...]]:
    with open_engine(place.url).session(read_only=True) as session:
        return session.fetch(sql)


def _by_day(session: Session, sql: str) -> dict[str, tuple[Any, ...]]:
    return {str(day): tuple(rest) for day, *rest in session.fetch(sql)}


def _aware(at: datetime) -> datetime:
    return at if at.tzinfo is not None else at.replace(tzinfo=timezone.utc)
