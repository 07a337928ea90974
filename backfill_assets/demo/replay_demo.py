"""`make demo-replay`: a week of payments that a wrong transform wrote, made again from their events."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from typing import Any

from rich.console import Console
from rich.table import Table as Grid

from backfill_assets.demo.place import Place
from backfill_assets.demo.progress import watch
from backfill_assets.demo.servers import servers
from backfill_assets.engines import open_engine
from backfill_assets.payments import stream
from backfill_assets.payments.tables import FCT_PAYMENTS, FIRST_DAY, LAST_DAY
from backfill_assets.slice import Slice
from backfill_assets.window import Window
from backfill_assets.writing import AuditTable, Run, rewrite

WEEK = (date(2026, 5, 8), date(2026, 5, 14))
TOO_OLD = "2026-05-01"
Truth = dict[str, tuple[int, Decimal]]


def run(place: Place, console: Console) -> bool:
    """Replay the week that was wrong, and tell whether every day of the table is right."""
    written = stream.write(place.events / "payments")
    console.print(f"{written:,} events of payments lie in {place.events / 'payments'}.")
    with place.engine().session() as session:
        for day in stream.days():
            wrong = WEEK[0] <= day <= WEEK[1]
            _load(session, day, stream.rows(day, wrong_yen=wrong))
    console.print(
        "The live loader has written them to analytics.fct_payments, a week of them wrongly: it took yen for"
    )
    console.print("having hundredths. Starting Dagster's webserver and daemon ...")
    before = _sums(place)
    partitions = [(WEEK[0] + timedelta(days=n)).isoformat() for n in range(7)]
    with servers(place) as running:
        console.print(f"  They answer at {running.url}")
        launch = running.dagster.launch
        name = [FCT_PAYMENTS.qualified.split(".")]
        tags = {"reason": "make demo-replay: yen have no hundredths"}
        backfill = launch(name, partitions, "Payments of a week, again", tags)
        status = watch(running.dagster, backfill, console, must_be_alive=running.must_be_alive)
        right = report(place, console, before)
        old = launch(name, [TOO_OLD], "A day that the stream no longer holds", tags)
        refused = watch(running.dagster, old, console, must_be_alive=running.must_be_alive)
    done = status in ("COMPLETED", "COMPLETED_SUCCESS")
    return right and done and refused == "COMPLETED_FAILED"


def report(place: Place, console: Console, before: Truth) -> bool:
    """Print a line for each day, and tell whether all of them hold what a plain loop over the events says."""
    after = _sums(place)
    grid = Grid("day", title=FCT_PAYMENTS.qualified, box=None, title_justify="left", pad_edge=False)
    for name in ("rows before", "amount before", "rows after", "amount after", "by the events"):
        grid.add_column(name, justify="right")
    grid.add_column("verdict")
    wrong = 0
    for day in stream.days():
        key, rows = day.isoformat(), stream.rows(day)
        truth = (len(rows), sum((row["amount"] for row in rows), Decimal(0)))
        was, now = before.get(key, (0, Decimal(0))), after.get(key, (0, Decimal(0)))
        wrong += now != truth
        touched = "untouched" if was == now else "mended"
        verdict = touched if now == truth else "WRONG"
        grid.add_row(key, f"{was[0]:,}", f"{was[1]:,}", f"{now[0]:,}", f"{now[1]:,}", f"{truth[1]:,}", verdict)  # fmt: skip
    console.print(grid)
    console.print(
        f"{wrong} of {len(stream.days())} days are wrong." if wrong else "Every day is right."
    )
    return not wrong


def _load(session: Any, day: date, rows: Sequence[dict[str, Any]]) -> None:
    """Write a day as the live loader did: it is one more writer of slices."""
    import pyarrow as pa

    begin = datetime.combine(day, time(), timezone.utc)
    table = pa.Table.from_pylist(
        list(rows),
        schema=pa.schema(
            [("paid_on", pa.date32()), ("payment_id", pa.int64()), ("currency", pa.string()), ("amount", pa.decimal128(18, 2))]
        ),
    )  # fmt: skip
    slice_ = Slice(
        FCT_PAYMENTS, Window(begin, begin + timedelta(days=1)), partition=day.isoformat()
    )
    live = Run("live-loader", reason="the live loader", code_version="1", allows=frozenset({"rule:no_yen_in_parts"}))  # fmt: skip
    rewrite(session, slice_, table, live, AuditTable())


def _sums(place: Place) -> Truth:
    with open_engine(place.url).session(read_only=True) as session:
        found = session.fetch(
            "SELECT CAST(paid_on AS VARCHAR), count(*), sum(amount) FROM analytics.fct_payments"
            f" WHERE paid_on BETWEEN DATE '{FIRST_DAY}' AND DATE '{LAST_DAY}' GROUP BY 1"
        )
    return {day: (rows, total) for day, rows, total in found}
