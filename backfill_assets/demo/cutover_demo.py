"""`make demo-cutover`: three faults of an old job found by comparing, mended, and its readers moved and moved back."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, datetime, timedelta, timezone
from typing import Any

from rich.console import Console
from rich.table import Table as Grid

from backfill_assets.demo.place import Place
from backfill_assets.demo.progress import watch
from backfill_assets.demo.servers import Running, servers
from backfill_assets.engines import Session, open_engine
from backfill_assets.errors import BackfillError
from backfill_assets.orders import feed, paths
from backfill_assets.orders.tables import (
    FCT_ORDERS_LEGACY,
    FCT_ORDERS_NEW,
    ORDERS_MIGRATION,
    VIEW,
)
from backfill_assets.slice import Slice
from backfill_assets.strategies.cutover.cutting import status
from backfill_assets.strategies.reconcile.day import DayCompared
from backfill_assets.strategies.reconcile.picture import as_svg, as_text
from backfill_assets.strategies.reconcile.store import ReconciliationStore
from backfill_assets.strategies.reconcile.streak import newest_due
from backfill_assets.strategies.reconcile.wording import by_column, lines_of
from backfill_assets.table import Table
from backfill_assets.window import Window
from backfill_assets.writing import AuditTable, Run, rewrite

DAYS = 21
_KEYS = 6
_BOTH = [FCT_ORDERS_LEGACY.qualified.split("."), FCT_ORDERS_NEW.qualified.split(".")]
_RECONCILIATION = [["reconciliation", ORDERS_MIGRATION.name]]
_WHO = {"migration": ORDERS_MIGRATION.name, "by": "make demo-cutover"}


def run(place: Place, console: Console) -> bool:
    """Show the whole of a migration, and tell whether each step ended as it should."""
    days = days_due(datetime.now(timezone.utc))
    partitions = [day.isoformat() for day in days]
    _history(place, days)
    console.print(
        f"{VIEW} reads {FCT_ORDERS_LEGACY.qualified}, which a job wrote for years, with three faults:"
    )
    console.print(
        "half a cent always up, days of the office's clock, and rows without a country lost."
    )
    console.print(f"Its replacement writes {FCT_ORDERS_NEW.qualified}. Starting Dagster's webserver and daemon ...")  # fmt: skip
    with servers(place) as running:
        console.print(f"  They answer at {running.url}")
        found = _compare(running, console, place, partitions)
        steps = {"all three faults were found": _told(place, console, found)}
        refused = _cutover_is_refused(running, console)
        steps["the cutover was refused while days differed"] = refused and _reads(place) == "old"
        console.print("\nThe faults are mended (version 2 of the old job), and both paths run again over all days.")  # fmt: skip
        again = running.dagster.launch(_BOTH, partitions, "Both paths again", {"reason": "make demo-cutover: version 2 has none of the faults"})  # fmt: skip
        watch(running.dagster, again, console, must_be_alive=running.must_be_alive)
        found = _compare(running, console, place, partitions)
        console.print("\n".join(as_text(found)))
        steps["every day is quiet"] = len(found) == DAYS and all(day.verdict == "equal" for day in found)  # fmt: skip
        for job, side, when in (
            ("cut_over", "new", ""),
            ("roll_back", "old", ""),
            ("cut_over", "new", " again"),
        ):
            steps[f"after {job}{when} readers read the {side} table"] = _move(running, console, place, job, side)  # fmt: skip
    page = place.folder / "reconciliation.svg"
    page.write_text("".join(as_svg(found, ORDERS_MIGRATION.quiet_days)))
    console.print(f"\nThe daily difference and the streak as a picture: {page}")
    for step, right in steps.items():
        console.print(f"  {'yes' if right else 'NO '}  {step}")
    return all(steps.values())


def days_due(now: datetime) -> list[date]:
    """Return the newest days that are due, the first of them first."""
    last = newest_due("UTC", now, ORDERS_MIGRATION.due_hours).days()[0]
    return [last - timedelta(days=n) for n in reversed(range(DAYS))]


def _history(place: Place, days: Sequence[date]) -> None:
    """Write what the old job's version 1 and its replacement have made of the days, and the view on the old table."""
    if place.at is None:
        place.warehouse.unlink(missing_ok=True)  # the demo's own file: it begins at the beginning
    with place.engine().session() as session:
        for day in days:
            _load(session, FCT_ORDERS_LEGACY, day, paths.FAULTS)
            _load(session, FCT_ORDERS_NEW, day, None)
        columns = ", ".join(paths.COLUMNS)
        session.execute(
            f"CREATE VIEW {VIEW} AS SELECT {columns} FROM {FCT_ORDERS_LEGACY.qualified}"
        )


def _load(session: Session, table: Table, day: date, faults: frozenset[str] | None) -> None:
    import pyarrow as pa

    slice_ = Slice(table, Window.day(day), partition=day.isoformat())
    orders = feed.read(slice_)
    rows = paths.new(slice_, orders) if faults is None else paths.legacy(slice_, orders, faults)
    run = Run("the-nightly-job", reason="the nightly job", code_version="1")
    rewrite(session, slice_, pa.Table.from_pandas(rows, preserve_index=False), run, AuditTable())


def _compare(
    running: Running, console: Console, place: Place, partitions: list[str]
) -> list[DayCompared]:
    backfill = running.dagster.launch(_RECONCILIATION, partitions, "Both sides compared", {"reason": "make demo-cutover"})  # fmt: skip
    watch(running.dagster, backfill, console, must_be_alive=running.must_be_alive)
    with open_engine(place.url).session(read_only=True) as session:
        return ReconciliationStore().days(session, ORDERS_MIGRATION.name)


def _told(place: Place, console: Console, found: Sequence[DayCompared]) -> bool:
    """Print a line for each day and some keys of the last one; tell whether each fault shows."""
    grid = Grid(
        "day", title="\nOld and new, day by day", box=None, title_justify="left", pad_edge=False
    )
    for name in ("rows old", "rows new", "only old", "only new", "other values"):
        grid.add_column(name, justify="right")
    grid.add_column("columns")
    grid.add_column("verdict")
    for day in found:
        columns = ", ".join(f"{name} {count}" for name, count in by_column(day).items())
        counts = (day.old.rows, day.new.rows, day.only_old, day.only_new, day.differing)
        grid.add_row(day.partition_key, *(f"{count:,}" for count in counts), columns, day.verdict)
    console.print(grid)
    with open_engine(place.url).session(read_only=True) as session:
        keys = ReconciliationStore().worst_keys(session, ORDERS_MIGRATION.name, found[-1].partition_key)  # fmt: skip
    shown: dict[str, int] = {}
    for key in keys:
        shown[key.kind] = shown.get(key.kind, 0) + 1
        if shown[key.kind] <= _KEYS // 3:
            for line in lines_of(key):
                console.print(f"  {found[-1].partition_key} {line['key']} {line['where']}: {line['column']} {line['old'] or 'no row'} | {line['new'] or 'no row'}")  # fmt: skip
    lost = sum(row.new.get("country") is None for row in keys if row.kind == "only_new")
    rounded = all(day.columns.get("amount", 0) > 0 for day in found)
    slipped = all(day.only_old > 0 for day in found[1:])
    return rounded and slipped and lost > 0


def _cutover_is_refused(running: Running, console: Console) -> bool:
    try:
        _job(running, "cut_over", "to see whether it is refused")
    except BackfillError as error:
        console.print(f"\nThe cutover is refused: {error.why.rpartition('Failure: ')[2]}")
        return True
    return False


def _move(running: Running, console: Console, place: Place, job: str, side: str) -> bool:
    _job(running, job, f"to show {job}")
    reads = _reads(place)
    console.print(f"{job}: readers of {VIEW} read the {reads} table.")
    return reads == side


def _job(running: Running, job: str, reason: str) -> None:
    config: Any = {**_WHO, "reason": reason, "dry_run": False}
    running.dagster.run_job(job, config, running.must_be_alive)


def _reads(place: Place) -> str:
    with open_engine(place.url).session() as session:
        return status(session, ORDERS_MIGRATION).reads
