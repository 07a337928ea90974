"""The checks against one plain scan: of a slice, and of ten years."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from datetime import date, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import duckdb

from backfill_assets.checks.verdicts import checks_of, verdicts
from backfill_assets.engines import Session, open_engine
from backfill_assets.expectations import RowCount
from backfill_assets.slice import Slice
from backfill_assets.table import Table
from backfill_assets.window import Window
from backfill_assets.writing import AuditTable, Run, rewrite
from backfill_assets_tests.bench.rows import ROWS, TABLE, rows_of, slice_of
from backfill_assets_tests.bench.timing import Ratio, compare

CHECKED = dataclasses.replace(
    TABLE,
    unique_key=("sale_id",),
    expects=(RowCount(against=ROWS),),
)
PLAIN = "SELECT count(*), count(DISTINCT sale_id), sum(amount) FROM analytics.fct_bench"
_YEARS, _A_DAY = 3650, 5480
_FIRST = date(2016, 1, 1)


def measure(folder: Path) -> Iterator[Ratio]:
    """Yield the ratios; both sides read the same file through connections of their own."""
    yield from _slices(folder)
    yield _ten_years(folder)


def _slices(folder: Path) -> Iterator[Ratio]:
    file = folder / "checks.duckdb"
    with open_engine(f"duckdb:///{file}").session() as session:
        for number in range(30):
            rewrite(session, slice_of(number), rows_of(number), Run("bench"))
        slices = [Slice(CHECKED, slice_of(15).window, partition="the day")]
        where = f"sale_date >= DATE '{slices[0].window.start:%Y-%m-%d}' AND sale_date < DATE '{slices[0].window.end:%Y-%m-%d}'"
        asked = _statements(session, CHECKED, slices)
        yield compare(
            f"all checks of a slice ({asked} statements) against one scan of it",
            _checks(session, CHECKED, slices),
            lambda: session.fetch(f"{PLAIN} WHERE {where}"),
            wanted=1.5,
            pairs=40,
        )
        month = [Slice(CHECKED, slice_of(n).window, partition=str(n)) for n in range(30)]
        asked = _statements(session, CHECKED, month)
        yield compare(
            f"the same of 30 slices in one run ({asked} statements), a slice",
            _checks(session, CHECKED, month),
            lambda: session.fetch(f"{PLAIN} WHERE {where}"),
            wanted=1.5,
            ours_per=30,
        )


def _ten_years(folder: Path) -> Ratio:
    file, table = folder / "years.duckdb", dataclasses.replace(CHECKED, expects=(RowCount(_A_DAY),))
    with duckdb.connect(str(file)) as connection:
        connection.execute("CREATE SCHEMA analytics")
        connection.execute(
            f"CREATE TABLE analytics.fct_bench AS SELECT CAST(DATE '{_FIRST}' + CAST(n // {_A_DAY} AS INTEGER) AS DATE)"
            f" AS sale_date, n AS sale_id, n % 7 AS quantity, (n % 1000) * 0.25 AS amount"
            f" FROM range({_YEARS * _A_DAY}) AS ns(n)"
        )
    days = [_FIRST + timedelta(days=n) for n in range(_YEARS)]
    slices = [Slice(table, Window.day(day), partition=str(day)) for day in days]
    engine = open_engine(f"duckdb:///{file}")
    with engine.session() as session:
        AuditTable().ensure(session)

    def ours() -> None:
        with engine.session(read_only=True) as session:
            _checks(session, table, slices)()

    def plain() -> None:
        with duckdb.connect(str(file), read_only=True) as connection:
            connection.execute(PLAIN).fetchall()

    with engine.session(read_only=True) as session:
        asked = _statements(session, table, slices)
    return compare(
        f"all checks of {_YEARS:,} days and {_YEARS * _A_DAY:,} rows ({asked} statements) against one full scan",
        ours,
        plain,
        wanted=2,
        pairs=3,
    )


def _checks(session: Session, table: Table, slices: Sequence[Slice]) -> Callable[[], Any]:
    now = datetime.now(timezone.utc)
    return lambda: list(verdicts(session, table, slices, AuditTable(), now))


class _Counting:
    def __init__(self, session: Session) -> None:
        self._session, self.asked = session, 0

    def __getattr__(self, name: str) -> Any:
        if name in ("fetch", "fetch_arrow", "columns_of"):
            self.asked += 1
        return getattr(self._session, name)


def _statements(session: Session, table: Table, slices: Sequence[Slice]) -> int:
    counting = _Counting(session)
    _checks(counting, table, slices)()  # type: ignore[arg-type]
    assert checks_of(table)
    return counting.asked
