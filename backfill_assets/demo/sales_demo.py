"""`make demo`: May 2026 of the sample, backfilled as the UI would, one line for each day."""

from __future__ import annotations

from datetime import date, timedelta

from rich.console import Console
from rich.table import Table as Grid

from backfill_assets.demo import report_demo, switch_demo
from backfill_assets.demo.place import Place
from backfill_assets.demo.progress import watch
from backfill_assets.demo.servers import servers
from backfill_assets.demo.verdict import Day, judge
from backfill_assets.engines import open_engine
from backfill_assets.sales.source import prepare

TABLES = ("analytics.fct_sales", "analytics.daily_product_sales")
# whole days since 1970 by arithmetic on seconds: the fact's own SQL says it with a cast in a time zone
_DAY_OF_EVENT = (
    "CAST(DATE '1970-01-01' + CAST(floor(extract(epoch FROM event_at) / 86400) AS INTEGER) AS DATE)"
)
_CONFIRMED = f"""(SELECT {_DAY_OF_EVENT} AS day, product_id, qty * unit_price AS amount
  FROM staging.sales_raw WHERE status = 'confirmed') AS confirmed"""
_AFTER = "SELECT sale_date, count(*), sum(amount) FROM {table} GROUP BY 1"
_SOURCE = {
    "analytics.fct_sales": f"SELECT day, count(*), sum(amount) FROM {_CONFIRMED} GROUP BY 1",
    "analytics.daily_product_sales": f"SELECT day, count(DISTINCT product_id), sum(amount) FROM {_CONFIRMED} GROUP BY 1",
}


def run(
    place: Place, console: Console, first: date = date(2026, 5, 1), last: date = date(2026, 5, 31)
) -> bool:
    """Backfill the days `first` to `last` and tell whether every one of them is right."""
    console.print(f"Preparing staging.sales_raw in {place.warehouse} ...")
    rows = prepare(place.engine(), console.print)
    console.print(f"  {rows:,} rows, some of them awkward on purpose.")
    partitions = [(first + timedelta(days=n)).isoformat() for n in range((last - first).days + 1)]
    console.print("Starting Dagster's webserver and daemon ...")
    with servers(place) as running:
        console.print(f"  They answer at {running.url}")
        backfill = running.dagster.launch(
            [table.split(".") for table in TABLES],
            partitions,
            f"Sales {partitions[0]} to {partitions[-1]}",
            {"reason": f"make demo: load {partitions[0]} to {partitions[-1]}"},
        )
        console.print(
            f"Launched backfill {backfill}: {len(partitions)} days of {' and '.join(TABLES)}."
        )
        status = watch(running.dagster, backfill, console, must_be_alive=running.must_be_alive)
        right = report(place, console, backfill, partitions)
        switched = switch_demo.show(running, console, TABLES[0], partitions[:2])
        reported = report_demo.show(running, console, backfill)
    return right and switched and reported and status in ("COMPLETED", "COMPLETED_SUCCESS")


def report(place: Place, console: Console, backfill: str, partitions: list[str]) -> bool:
    """Print a line for each day and the audit; tell whether all days are right."""
    with open_engine(place.url).session(read_only=True, report=console.print) as session:
        judged = {
            table: judge(
                session, table, backfill, partitions, _AFTER.format(table=table), _SOURCE[table]
            )
            for table in TABLES
        }
        history = session.fetch(
            "SELECT table_name, count(*), sum(rows_before), sum(rows_after), sum(seconds), min(reason)"
            f" FROM backfill.load_audit WHERE backfill_id = '{backfill}' GROUP BY 1 ORDER BY 1"
        )
        total = session.fetch("SELECT count(*) FROM backfill.load_audit")[0][0]
    for table, days in judged.items():
        console.print(lines(table, days))
    console.print(f"backfill.load_audit holds {total} loads; this backfill wrote:")
    for table, loads, before, after, seconds, reason in history:
        console.print(
            f"  {table}: {loads} slices, {before:,} rows replaced by {after:,} in {seconds:.1f} s, because: {reason}"
        )
    wrong = [day for days in judged.values() for day in days if not day.is_right]
    console.print(
        f"{len(wrong)} of {sum(map(len, judged.values()))} slices are wrong."
        if wrong
        else "Every day is right."
    )
    return not wrong


def lines(table: str, days: list[Day]) -> Grid:
    """Return the days of a table as a grid, one line each."""
    grid = Grid("day", title=table, box=None, title_justify="left", pad_edge=False)
    for name in ("rows before", "rows after", "source rows"):
        grid.add_column(name, justify="right")
    grid.add_column("verdict")
    for day in days:
        before = "-" if day.before is None else f"{day.before:,}"
        grid.add_row(day.partition, before, f"{day.after:,}", f"{day.source:,}", day.verdict)
    return grid
