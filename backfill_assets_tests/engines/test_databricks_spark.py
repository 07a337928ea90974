"""What Databricks' SQL is made of, on a real Spark: every statement is read, every value and hash is computed by it.

Spark is not Databricks, and has no Delta here: it reads `REPLACE WHERE`, and carries out what open Spark has in its
place, the dynamic overwrite of a partition.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from datetime import date, datetime, timezone
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from backfill_assets.engines.databricks import SPELLING
from backfill_assets.engines.databricks_types import selects, sql_type, writable
from backfill_assets.engines.sql import bound, predicate
from backfill_assets.slice import Slice
from backfill_assets.table import SliceColumn, Table
from backfill_assets.window import Window
from backfill_assets.writing import Select
from backfill_assets.writing.fit import family
from backfill_assets_tests.databricks_workspace import DatabricksWarehouse
from backfill_assets_tests.warehouses import at

pytestmark = pytest.mark.slow
DAY = date(2026, 5, 12)
SALES = Table("mart.fct_sales", SliceColumn("day", "date"))


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A session of a Spark that runs here, set as the engine sets a SQL warehouse."""
    sql = pytest.importorskip(
        "pyspark.sql", reason="pip install 'backfill-assets[spark]': a Spark of ~450 MB"
    )
    if shutil.which("java") is None:
        pytest.skip("Spark needs Java 17 or later on the path")
    built = sql.SparkSession.builder.master("local[1]")
    for name, value in {
        "spark.ui.enabled": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.ansi.enabled": "true",
        "spark.sql.shuffle.partitions": "1",
        "spark.sql.sources.partitionOverwriteMode": "dynamic",
        "spark.sql.warehouse.dir": str(tmp_path_factory.mktemp("spark")),
    }.items():
        built = built.config(name, value)
    session = built.getOrCreate()
    yield session
    session.stop()


def asked(spark: Any, sql: str) -> list[tuple[Any, ...]]:
    return [tuple(row) for row in spark.sql(sql).collect()]


def test_spark_reads_every_statement_that_a_slice_takes(
    spark: Any, databricks: DatabricksWarehouse
) -> None:
    keyed = Table(
        "mart.t",
        SliceColumn("at", "timestamptz"),
        unique_key=("id",),
        dimensions=("region",),
        on_schema_change="add",
    )
    for hour in (1, 2):
        data = {"at": [at(f"2026-05-12 0{hour}:00")], "id": [hour], "region": ["it's"]}
        databricks.write(keyed, "2026-05-12", data, fixed={"region": "it's"})
    databricks.write(keyed, "2026-05-12", {**data, "more": [1.5]}, fixed={"region": "it's"})
    databricks.write(Table("mart.dim"), None, {"id": [1]})
    databricks.execute("CREATE TABLE mart.source AS SELECT * FROM mart.t")
    databricks.write(
        keyed, "2026-05-12", Select("SELECT * FROM mart.source", on="at"), fixed={"region": "it's"}
    )
    parser = spark._jsparkSession.sessionState().sqlParser()
    sent = dict.fromkeys(databricks.workspace.sent)
    assert len(sent) > 60
    for sql in sent:
        # Delta's own, which its extension of the parser reads
        if not sql.startswith("DESCRIBE HISTORY "):
            parser.parsePlan(f'{sql} /* {{"app": "backfill_assets"}} */')


def test_a_day_is_replaced_by_a_dynamic_overwrite_and_its_neighbours_are_untouched(
    spark: Any,
) -> None:
    spark.sql("CREATE SCHEMA IF NOT EXISTS mart")
    spark.sql(
        "CREATE TABLE mart.fct_sales (id BIGINT, day DATE) USING parquet PARTITIONED BY (day)"
    )
    spark.sql(
        "INSERT INTO mart.fct_sales SELECT id, date_add(DATE '2026-05-11', CAST(id % 3 AS INT)) FROM range(9000)"
    )
    neighbours = "SELECT * FROM mart.fct_sales WHERE day <> DATE '2026-05-12'"
    files = sorted(spark.sql(neighbours).inputFiles())
    (stage,) = selects(SPELLING, pa.table({"id": [1, 2], "day": [DAY, DAY]}), 100, 10_000)
    slice_ = Slice(SALES, Window.day("2026-05-12"))
    spark.sql(
        f"INSERT OVERWRITE mart.fct_sales SELECT * FROM ({stage}) WHERE {predicate(SPELLING, slice_)}"
    )
    counts = asked(spark, "SELECT day, count(*) FROM mart.fct_sales GROUP BY day ORDER BY day")
    assert counts == [(date(2026, 5, 11), 3000), (DAY, 2), (date(2026, 5, 13), 3000)]
    assert sorted(spark.sql(neighbours).inputFiles()) == files


def test_every_value_of_a_frame_is_read_as_it_was(spark: Any) -> None:
    instant = datetime(2026, 5, 12, 1, 2, 3, 456789, tzinfo=timezone.utc)
    data = writable(
        pa.table(
            {
                "whole": pa.array([2**63 - 1, -(2**63), None]),
                "large": pa.array([2**64 - 1, 0, None], pa.uint64()),
                "exact": pa.array([Decimal("1234567890123456789.0123456789"), None, Decimal("-0.1")], pa.decimal128(38, 10)),
                "real": pa.array([float("inf"), 1e-300, 0.1 + 0.2]),
                "text": pa.array(["it's a \\ \"quote\"\n\t'", "Ω 😀 -- /* x */", None]),
                "raw": pa.array([b"\x00\xff", b"", None]),
                "flag": pa.array([True, False, None]),
                "seen": pa.array([instant, None, instant]),
                "clock": pa.array([instant.replace(tzinfo=None), None, None], pa.timestamp("us")),
                "day": pa.array([date(1900, 1, 1), None, DAY]),
                "empty": pa.array([None, None, None], pa.string()),
            }
        )
    )  # fmt: skip
    (query,) = selects(SPELLING, data, 100, 10_000)
    found = spark.sql(query).toArrow()
    utc = found.set_column(7, "seen", found["seen"].cast(pa.timestamp("us", tz="UTC")))
    assert utc.to_pylist() == data.to_pylist()
    kinds = dict(spark.sql(query).dtypes)
    for field in data.schema:
        assert family(kinds[field.name], SPELLING) == family(str(sql_type(field.type)), SPELLING)
    assert (kinds["seen"], kinds["clock"]) == ("timestamp", "timestamp_ntz")


def test_an_empty_frame_has_its_types(spark: Any) -> None:
    data = pa.table({"day": pa.array([], pa.date32()), "n": pa.array([], pa.float64())})
    (query,) = selects(SPELLING, data, 100, 10_000)
    assert spark.sql(query).dtypes == [("day", "date"), ("n", "double")]
    assert asked(spark, query) == []


def checksum(spark: Any, values: str, columns: str = "a, b", kind: str = "") -> str:
    parts = [
        SPELLING.column_hash[kind].format(column=name.strip(), place=1)
        for name in columns.split(",")
    ]
    row = SPELLING.row_hash.format(columns=SPELLING.hash_joint.join(parts))
    total = SPELLING.hash_sum.format(hash=row)
    return asked(spark, f"SELECT {total} FROM VALUES {values} AS t ({columns})")[0][0]


def test_a_checksum_tells_rows_apart_whose_values_look_alike(spark: Any) -> None:
    alike = [
        "('x', NULL)", "(NULL, 'x')", "('x', '')", "('', 'x')", "('', '')", "(NULL, NULL)", "('=', NULL)",
        "('x=', NULL)", "('', NULL)", "(NULL, '')",
    ]  # fmt: skip
    assert len({checksum(spark, values) for values in alike}) == len(alike)
    assert checksum(spark, "(X'00ff'), (X'')", "a", "binary") != checksum(
        spark, "(X'00fe'), (X'')", "a", "binary"
    )


def test_a_checksum_does_not_depend_on_the_order_of_rows_and_counts_twins(spark: Any) -> None:
    assert checksum(spark, "(1, 2), (3, 4)") == checksum(spark, "(3, 4), (1, 2)")
    assert checksum(spark, "(1, 2), (1, 2)") != checksum(spark, "(1, 2), (3, 4)")
    assert asked(spark, f"SELECT {SPELLING.hash_sum.format(hash='xxhash64(1)')} FROM range(0)") == [
        ("0",)
    ]
    # beyond what a BIGINT holds
    many = SPELLING.hash_sum.format(hash="9223372036854775807")
    assert asked(spark, f"SELECT {many} FROM range(100000)")[0][0] == str(
        9223372036854775807 * 100000
    )


@pytest.mark.parametrize("kind", ["date", "timestamp", "timestamptz", "int_yyyymmdd", "iso_text"])
def test_the_edges_of_a_slice_are_typed_values_to_spark(spark: Any, kind: Any) -> None:
    column = SliceColumn("c", kind)
    start, end = (bound(SPELLING, column, v) for v in column.bounds(Window.day("2026-05-12")))
    types = {
        "date": "date", "timestamp": "timestamp_ntz", "timestamptz": "timestamp", "int_yyyymmdd": "int",
        "iso_text": "string",
    }  # fmt: skip
    assert dict(spark.sql(f"SELECT {start} AS c").dtypes)["c"] == types[kind]
    inside = f"c >= {start} AND c < {end}"
    found = asked(spark, f"SELECT {inside} FROM (SELECT {start} AS c UNION ALL SELECT {end})")
    assert found == [(True,), (False,)]


def test_days_seconds_and_rows_apart_are_counted_as_spark_has_them(spark: Any) -> None:
    late = "TIMESTAMP '2026-05-12 02:00:00+00:00'"
    day = SPELLING.day_of_instant.format(column=late, zone="'America/New_York'")
    assert asked(spark, f"SELECT {day}") == [(date(2026, 5, 11),)]
    for value in (
        "TIMESTAMP_NTZ '2026-05-12 00:00:00.5'",
        "TIMESTAMP '2026-05-12 02:00:00.5+02:00'",
    ):
        seconds = SPELLING.epoch_seconds.format(column=value)
        assert asked(spark, f"SELECT {seconds}") == [(1778544000.5,)]
    apart = SPELLING.count_rows_apart.format(columns="a, b")
    rows = "(1, NULL), (1, NULL), (NULL, NULL), (2, 3)"
    assert asked(spark, f"SELECT {apart} FROM VALUES {rows} AS t (a, b)") == [(3,)]
    assert asked(spark, f"SELECT {SPELLING.try_cast.format(value=repr('x'), type='BIGINT')}") == [
        (None,)
    ]
