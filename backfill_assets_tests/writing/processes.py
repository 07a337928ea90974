"""Real processes that write: started quickly from a server that has imported everything, killed like any other."""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections.abc import Callable
from datetime import date, timedelta
from importlib import import_module
from typing import Any

import pyarrow as pa

from backfill_assets.errors import BackfillError
from backfill_assets.table import SliceColumn, Table
from backfill_assets_tests.interruptions import after_statement, before_call
from backfill_assets_tests.warehouses import Warehouse

# what a write imports when it needs it, imported once before there are children
for _module in (
    "backfill_assets.engines.duckdb", "backfill_assets.engines.postgres", "duckdb", "pandas", "psycopg",
    "pyarrow.compute", "pyarrow.csv", "pyarrow.dataset", "sqlglot.dialects.duckdb", "sqlglot.dialects.postgres",
):  # fmt: skip
    import_module(_module)
PROCESSES = multiprocessing.get_context("forkserver")
PROCESSES.set_forkserver_preload([__name__])

FIRST = date(2026, 5, 1)
SALES = Table("mart.fct_sales", SliceColumn("day", "date"), unique_key=("day", "id"), max_shrink=1)


def rows(note: str, *days: date, count: int = 200) -> pa.Table:
    """Rows of `days`, each saying `note`."""
    pairs = [(day, n) for day in days for n in range(count)]
    return pa.table(
        {"day": [d for d, _ in pairs], "id": [n for _, n in pairs], "note": [note] * len(pairs)}
    )


def day_of(number: int) -> date:
    return FIRST + timedelta(days=number)


class Writer:
    """A process that runs `target(...)`; what it returns or raises comes back as text."""

    def __init__(self, target: Callable[..., Any], *arguments: Any) -> None:
        self._result, theirs = PROCESSES.Pipe(duplex=False)
        self.process = PROCESSES.Process(target=_run, args=(theirs, target, arguments))
        self.process.start()
        theirs.close()

    def outcome(self, seconds: float = 120) -> str:
        """Wait for the end and return `done ...`, the name and text of an error, or `killed`."""
        try:
            said = self._result.recv() if self._result.poll(seconds) else "still running"
        except EOFError:
            said = "killed"
        self.process.join(seconds)
        if self.process.is_alive():
            self.process.kill()
        return said


def _run(result: Any, target: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
    try:
        result.send(f"done {target(*arguments)}")
    except BackfillError as error:
        result.send(f"{type(error).__name__}: {error}")
    except BaseException as error:
        result.send(f"BUG {type(error).__name__}: {error}")


def write(url: str, window: str | None, data: pa.Table, run_id: str, start: Any = None) -> int:
    """Rewrite one slice, together with whoever else waits for `start`."""
    if start is not None:
        start.wait()
    return Warehouse(url).write(SALES, window, data, run_id=run_id).rows_after


def write_days(url: str, days: list[date], note: str, start: Any) -> int:
    """Rewrite many days in one session, as a range run does."""
    start.wait()
    with Warehouse(url).session(who=f"run {note}") as session:
        for day in days:
            Warehouse(url).write(SALES, str(day), rows(note, day), session=session, run_id=note)
            session.breathe()
    return len(days)


def write_and_die(url: str, table: Table, window: str, data: pa.Table, number: int) -> str:
    """Rewrite one slice and be killed, as by kill -9, right before the session's call `number`."""
    with Warehouse(url).session(who="run victim") as session:
        before_call(session, number, lambda: os.kill(os.getpid(), signal.SIGKILL))
        Warehouse(url).write(table, window, data, session=session, run_id="victim")
    return "survived"


def write_slowly(
    url: str, window: str, data: pa.Table, run_id: str, inside: Any, go_on: Any
) -> int:
    """Rewrite one slice, saying `inside` between DELETE and INSERT and waiting there for `go_on`."""
    with Warehouse(url).session(who=f"run {run_id}") as session:
        after_statement(session, "DELETE", lambda: (inside.set(), go_on.wait(60)))
        return Warehouse(url).write(SALES, window, data, session=session, run_id=run_id).rows_after
