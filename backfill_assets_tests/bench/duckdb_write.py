"""`rewrite()` on DuckDB against the bare transaction, and a day in a long table against one in a short table."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import duckdb

from backfill_assets.engines import Session, open_engine
from backfill_assets.writing import Run, rewrite
from backfill_assets_tests.bench.rows import FIRST, day_of, rows_of, slice_of
from backfill_assets_tests.bench.timing import Ratio, compare


def bare(connection: duckdb.DuckDBPyConnection, data: object) -> None:
    """What a careful person types: one transaction, by name, and nothing else."""
    connection.register("incoming", data)
    connection.execute("BEGIN")
    connection.execute(
        "DELETE FROM analytics.fct_bench"
        f" WHERE sale_date >= DATE '{FIRST}' AND sale_date < DATE '{day_of(1)}'"
    )
    connection.execute("INSERT INTO analytics.fct_bench BY NAME SELECT * FROM incoming")
    connection.execute("COMMIT")
    connection.unregister("incoming")


def measure(folder: Path) -> Iterator[Ratio]:
    """Yield the ratios; both sides write their own copy of the same file."""
    yield from _on_open_connections(folder)
    yield _opened_and_closed(folder)
    yield _long_table(folder)
    yield _long_table_bare(folder)


def _warehouse(folder: Path, name: str, days: int = 30, rows_a_day: int | None = None) -> Path:
    file = folder / name
    with duckdb.connect(str(file)) as connection:
        connection.execute("CREATE SCHEMA analytics")
        connection.register("day", rows_of(0))
        amount = f"USING SAMPLE {rows_a_day} ROWS (reservoir, 1)" if rows_a_day else ""
        connection.execute(
            "CREATE TABLE analytics.fct_bench AS SELECT day.* REPLACE (CAST(day.sale_date + CAST(n AS INTEGER) AS DATE)"
            f" AS sale_date) FROM range({days}) AS days(n), (SELECT * FROM day {amount}) AS day ORDER BY 1"
        )
    return file


def _writer(session: Session) -> Callable[[], object]:
    data = rows_of(0)
    return lambda: rewrite(session, slice_of(0), data, Run("bench"))


def _on_open_connections(folder: Path) -> Iterator[Ratio]:
    ours, theirs = _warehouse(folder, "open_ours.duckdb"), _warehouse(folder, "open_bare.duckdb")
    data = rows_of(0)
    with (
        open_engine(f"duckdb:///{ours}").session() as session,
        duckdb.connect(str(theirs)) as connection,
    ):
        yield compare(
            "rewrite() against the bare transaction, DuckDB, connection open",
            _writer(session),
            lambda: bare(connection, data),
            wanted=2.5,
            pairs=25,
        )


def _opened_and_closed(folder: Path) -> Ratio:
    ours, theirs = (
        _warehouse(folder, "closed_ours.duckdb"),
        _warehouse(folder, "closed_bare.duckdb"),
    )
    engine, data = open_engine(f"duckdb:///{ours}"), rows_of(0)

    def write() -> None:
        with engine.session() as session:
            _writer(session)()

    def reference() -> None:
        with duckdb.connect(str(theirs)) as connection:
            bare(connection, data)

    return compare(
        "rewrite() against the bare transaction, DuckDB, opened and closed around it",
        write,
        reference,
        wanted=2.5,
    )


def _long_table(folder: Path) -> Ratio:
    """Both files hold an audit row for each of their days, as after a backfill of all of it."""
    calls = []
    for name, days in (("long.duckdb", 3650), ("short.duckdb", 30)):
        engine = open_engine(f"duckdb:///{_warehouse(folder, name, days, 5000)}")
        with engine.session() as session:
            _writer(session)()
            session.execute(
                "INSERT INTO backfill.load_audit_entries SELECT CAST(uuid() AS VARCHAR), 'analytics.fct_bench', e.source_read_at,"
                " json_merge_patch(e.entry, json_object('partition_key', CAST(DATE '2026-05-01' + CAST(n AS INTEGER) AS VARCHAR),"
                " 'window_start', CAST(DATE '2026-05-01' + CAST(n AS INTEGER) AS VARCHAR) || 'T00:00:00+00:00',"
                " 'window_end', CAST(DATE '2026-05-02' + CAST(n AS INTEGER) AS VARCHAR) || 'T00:00:00+00:00'))"
                f" FROM backfill.load_audit_entries AS e, range(1, {days}) AS days(n)"
            )

        def write(engine=engine) -> None:
            with engine.session() as session:
                _writer(session)()

        calls.append(write)
    return compare(
        "a day in a table of 3,650 days against the same day in one of 30", *calls, wanted=1.2
    )


def _long_table_bare(folder: Path) -> Ratio:
    data, calls = rows_of(0), []
    for name, days in (("long_bare.duckdb", 3650), ("short_bare.duckdb", 30)):
        file = _warehouse(folder, name, days, 5000)

        def write(file=file) -> None:
            with duckdb.connect(str(file)) as connection:
                bare(connection, data)

        calls.append(write)
    return compare("the bare transaction likewise", *calls, wanted=None)
