"""Columns meet by name, under the declared policy, and no value is rounded, cut or retyped on the way."""

from __future__ import annotations

import math
import re
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from backfill_assets.errors import (
    BackfillError,
    BadRows,
    DeclarationError,
    SchemaMismatch,
    WriteFailed,
)
from backfill_assets.table import SliceColumn, Table
from backfill_assets.window import UTC
from backfill_assets_tests.warehouses import Warehouse

DAY = date(2026, 5, 12)
DAYS = SliceColumn("day", "date")
T = Table("t", DAYS)


def table(policy: str = "fail", **declared: Any) -> Table:
    return Table("t", DAYS, on_schema_change=policy, **declared)  # type: ignore[arg-type]


def one(**columns: Any) -> pa.Table:
    return pa.table(
        {
            "day": [DAY],
            **{name: v if isinstance(v, pa.Array) else [v] for name, v in columns.items()},
        }
    )


# order and policies


def test_columns_are_matched_by_name_and_not_by_place(warehouse: Warehouse) -> None:
    warehouse.write(T, "2026-05-12", one(a="a", b="b"))
    warehouse.write(T, "2026-05-12", pa.table({"b": ["b"], "day": [DAY], "a": ["a"]}))
    assert warehouse.rows("SELECT a, b FROM t") == [("a", "b")]


@pytest.mark.parametrize("name", ["told", "sql", "self", "Path", "relation"])
def test_a_new_table_may_have_the_name_of_anything_in_our_program(
    warehouse: Warehouse, name: str
) -> None:
    """DuckDB's driver looks for the variables of whoever asks, when it finds no such table."""
    warehouse.write(Table(name, DAYS), "2026-05-12", one(a=1))
    assert warehouse.count(f'"{name}"') == 1


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ({"a": 1, "b": 2, "c": 3}, "the rows bring 'c'"),
        ({"a": 1}, "which the rows lack"),
        ({"a": 1, "c": 3}, "the rows bring 'c'.* and the table has 'b'"),
    ],
    ids=["a_new_column", "a_missing_column", "both"],
)
def test_changed_columns_are_refused_unless_a_policy_is_declared(
    warehouse: Warehouse, rows: Any, said: str
) -> None:
    warehouse.write(T, "2026-05-12", one(a=1, b=2))
    with pytest.raises(SchemaMismatch, match=said):
        warehouse.write(T, "2026-05-12", one(**rows))
    assert warehouse.rows("SELECT a, b FROM t") == [(1, 2)]


def test_the_policy_add_adds_new_columns_and_fills_missing_ones_with_null(
    warehouse: Warehouse,
) -> None:
    warehouse.write(table("add"), "2026-05-12", one(a=1, b=2))
    warehouse.write(
        table("add"), "2026-05-13", {"day": [date(2026, 5, 13)], "a": [1], "c": [Decimal("3.50")]}
    )
    assert list(warehouse.columns("t") or {}) == ["day", "a", "b", "c"]
    assert warehouse.rows("SELECT a, b, c FROM t ORDER BY day") == [
        (1, 2, None),
        (1, None, Decimal("3.50")),
    ]


def test_the_policy_ignore_leaves_new_columns_out_and_fills_missing_ones_with_null(
    warehouse: Warehouse,
) -> None:
    warehouse.write(table("ignore"), "2026-05-12", one(a=1, b=2))
    warehouse.write(table("ignore"), "2026-05-12", one(a=7, c=3))
    assert warehouse.rows("SELECT * FROM t") == [(DAY, 7, None)]


def test_a_refused_write_adds_no_column(warehouse: Warehouse) -> None:
    warehouse.write(table("add"), "2026-05-12", one(a=1))
    with pytest.raises(BadRows):
        warehouse.write(table("add"), "2026-05-13", one(a=1, c=3))
    assert list(warehouse.columns("t") or {}) == ["day", "a"]


def test_a_table_without_the_slice_column_is_refused_under_every_policy(
    warehouse: Warehouse,
) -> None:
    warehouse.execute("CREATE TABLE t (a BIGINT)")
    for policy in ("fail", "add", "ignore"):
        with pytest.raises(SchemaMismatch):
            warehouse.write(table(policy), "2026-05-12", one(a=1))


def test_rows_without_the_slice_column_or_the_key_are_refused(warehouse: Warehouse) -> None:
    with pytest.raises(SchemaMismatch, match="the rows have no column 'day', only 'a'"):
        warehouse.write(T, "2026-05-12", {"a": [1]})
    with pytest.raises(SchemaMismatch, match="no column 'id'"):
        warehouse.write(table(unique_key=("id",)), "2026-05-12", one(a=1))


def test_declared_columns_are_made_as_declared_and_checksums_stay_the_same(
    warehouse: Warehouse,
) -> None:
    kinds = {
        "day": "DATE",
        "n": "INT",
        "price": "NUMERIC(10, 2)",
        "at": "TIMESTAMPTZ",
        "note": "VARCHAR(20)",
    }
    declared = table(columns={name: warehouse.type_of(kind) for name, kind in kinds.items()})
    rows = one(n=1, price=1.5, at=datetime(2026, 5, 12, tzinfo=UTC), note="x")
    first, second = (warehouse.write(declared, "2026-05-12", rows) for _ in range(2))
    assert first.checksum == second.checksum
    made = warehouse.columns("t") or {}
    assert list(made) == ["day", "n", "price", "at", "note"]
    wanted = "numeric(10,2)" if warehouse.lacks("NUMERIC(18, 2)") is None else "numeric(38,9)"
    assert re.sub("decimal|number(?=\\()", "numeric", made["price"].lower()) == wanted


def test_a_row_of_all_the_types_comes_back_as_it_went(warehouse: Warehouse) -> None:
    values = {
        "whole": pa.array([2**63 - 1]),
        "unsigned": pa.array([2**64 - 1], pa.uint64()),
        "small": pa.array([-128], pa.int8()),
        "money": pa.array([Decimal("-0.01")], pa.decimal128(18, 2)),
        "precise": pa.array([Decimal("12345678901234567890.123456789")], pa.decimal128(38, 9)),
        "real": pa.array([0.1 + 0.2]),
        "truth": pa.array([True]),
        "text": pa.array(["a\"b'c\\d\n\r\te,\\.\nnaïve 😀 NULL\n\\.\nb"]),
        "blank": pa.array([""]),
        "nothing": pa.array([None], pa.string()),
        "bytes": pa.array([b"\x00\xff\\x41"], pa.binary()),
        "clock": pa.array([datetime(1677, 1, 1, 0, 0, 0, 1)], pa.timestamp("us")),
        "instant": pa.array(
            [datetime(2262, 12, 31, 23, 59, 59, 999999, tzinfo=UTC)],
            pa.timestamp("us", tz="America/New_York"),
        ),
        "word": pa.array(["x"]).dictionary_encode(),
    }
    loads = [warehouse.write(T, "2026-05-12", one(**values)) for _ in range(2)]
    assert loads[0].checksum == loads[1].checksum
    with warehouse.session() as session:
        back = session.fetch_arrow("SELECT * FROM t").to_pylist()[0]
    sent = {name: array.to_pylist()[0] for name, array in values.items()}
    assert back == {"day": DAY, **sent}
    assert (back["blank"], back["nothing"]) == ("", None)


@pytest.mark.parametrize(
    "number", [float("nan"), float("inf"), float("-inf"), -0.0, 5e-324, 1.7976931348623157e308]
)
def test_a_float_that_is_hard_to_write_down_comes_back_as_it_went(
    warehouse: Warehouse, number: float
) -> None:
    if not (math.isfinite(number) or warehouse.keeps_nan):
        pytest.skip("this engine has no such number")
    warehouse.write(T, "2026-05-12", one(x=number))
    with warehouse.session() as session:
        assert repr(session.fetch_arrow("SELECT x FROM t")["x"].to_pylist()[0]) == repr(number)


def test_texts_that_look_like_something_else_stay_texts(warehouse: Warehouse) -> None:
    texts = ["NULL", "NaN", "null", "", "true", "0012", "1e5", "\\N", "\\.", " ", '"', "2026-05-12"]
    warehouse.write(
        T, "2026-05-12", {"day": [DAY] * len(texts), "x": texts, "n": list(range(len(texts)))}
    )
    with warehouse.session() as session:
        assert session.fetch_arrow("SELECT x FROM t ORDER BY n")["x"].to_pylist() == texts
        assert session.fetch_arrow("SELECT x FROM t WHERE n = 3")["x"].to_pylist() == [""]
        assert session.fetch_arrow("SELECT x FROM t WHERE n = 99").num_rows == 0


# lossy values

LOSSY = {
    "a_fraction_in_a_whole_number": ("BIGINT", 1.7),
    "a_third_place_in_two": ("NUMERIC(18, 2)", 1.255),
    "a_decimal_third_place_in_two": ("NUMERIC(18, 2)", Decimal("1.255")),
    "a_float_s_dust_in_a_decimal": ("NUMERIC(38, 10)", 0.1 + 0.2),
    "a_number_too_large": ("SMALLINT", 70_000),
    "an_unsigned_number_too_large": ("BIGINT", pa.array([2**64 - 1], pa.uint64())),
    "a_whole_number_beyond_a_float": ("DOUBLE PRECISION", 2**53 + 1),
    "a_double_in_a_real": ("REAL", 0.1),
    "not_a_number_in_a_whole_number": ("BIGINT", float("nan")),
    "a_time_in_a_date": ("DATE", datetime(2026, 5, 12, 1)),
    "a_text_in_a_number": ("BIGINT", "12"),
    "a_text_in_a_date": ("DATE", "2026-05-12"),
    "a_number_in_a_text": ("VARCHAR(10)", 12),
    "a_truth_in_a_number": ("BIGINT", True),
    "a_clock_in_an_instant": ("TIMESTAMP WITH TIME ZONE", datetime(2026, 5, 12)),
    "an_instant_in_a_clock": ("TIMESTAMP", datetime(2026, 5, 12, tzinfo=UTC)),
}


@pytest.mark.parametrize("case", LOSSY)
def test_a_value_that_its_column_would_change_is_refused(warehouse: Warehouse, case: str) -> None:
    kind, value = LOSSY[case]
    if lacking := warehouse.lacks(kind):
        pytest.skip(lacking)
    warehouse.execute(f"CREATE TABLE t (day DATE, x {kind})")
    good = {
        "day": [DAY, DAY],
        "x": pa.concat_arrays(
            [v := value if isinstance(value, pa.Array) else pa.array([value]), pa.nulls(1, v.type)]
        ),
    }
    if kind in warehouse.keeps:
        warehouse.write(T, "2026-05-12", good)
        assert warehouse.rows("SELECT x FROM t WHERE x IS NOT NULL") == [(value,)]
        return
    with pytest.raises(
        SchemaMismatch, match=r"t 2026-05-12 was left as it was: .*'x'|'x' cannot be staged"
    ):
        warehouse.write(T, "2026-05-12", good)
    assert warehouse.count("t") == 0
    assert warehouse.loads() == []


KEPT = {
    "a_round_float_in_a_whole_number": ("BIGINT", 2.0, 2),
    "two_places_in_two": ("NUMERIC(18, 2)", 1.25, Decimal("1.25")),
    "a_whole_number_in_a_decimal": ("NUMERIC(18, 2)", 3, Decimal("3.00")),
    "a_decimal_in_a_float": ("DOUBLE PRECISION", Decimal("1.25"), 1.25),
    "a_midnight_in_a_date": ("DATE", datetime(2026, 5, 12), DAY),
    "a_date_in_a_clock": ("TIMESTAMP", DAY, datetime(2026, 5, 12)),
    "a_float32_in_a_real": ("REAL", pa.array([0.5], pa.float32()), 0.5),
    "a_small_number_in_a_small_column": ("SMALLINT", 7, 7),
}


@pytest.mark.parametrize("case", KEPT)
def test_a_value_that_its_column_keeps_is_taken(warehouse: Warehouse, case: str) -> None:
    kind, value, kept = KEPT[case]
    warehouse.execute(f"CREATE TABLE t (day DATE, x {kind})")
    warehouse.write(T, "2026-05-12", one(x=value))
    assert warehouse.rows("SELECT x FROM t") == [(kept,)]


def test_a_text_that_is_too_long_for_its_column_is_not_cut_off(warehouse: Warehouse) -> None:
    warehouse.execute("CREATE TABLE t (day DATE, x VARCHAR(3))")
    if not warehouse.keeps_lengths:  # DuckDB has none, and keeps it all
        warehouse.write(T, "2026-05-12", one(x="abcd"))
        assert warehouse.rows("SELECT x FROM t") == [("abcd",)]
        return
    warehouse.write(T, "2026-05-12", one(x="abc"))
    with pytest.raises(
        SchemaMismatch, match="1 values of column 'x' would change .* for example abcd"
    ):
        warehouse.write(T, "2026-05-12", one(x="abcd"))
    assert warehouse.rows("SELECT x FROM t") == [("abc",)]


def test_the_number_of_changed_values_and_some_of_them_are_named(warehouse: Warehouse) -> None:
    warehouse.execute("CREATE TABLE t (day DATE, x BIGINT)")
    with pytest.raises(SchemaMismatch, match=r"2 values of column 'x' would change .*1\.5.*2\.5"):
        warehouse.write(T, "2026-05-12", {"day": [DAY] * 4, "x": [1.5, 2.0, 2.5, None]})


# columns without values


def test_an_all_null_first_day_makes_a_text_column_that_later_texts_fit(
    warehouse: Warehouse,
) -> None:
    warehouse.write(T, "2026-05-12", one(note=pa.array([None], pa.null())))
    warehouse.write(T, "2026-05-13", {"day": [date(2026, 5, 13)], "note": ["real"]})
    assert warehouse.rows("SELECT note FROM t ORDER BY day") == [(None,), ("real",)]


@pytest.mark.parametrize(
    "kind", ["BIGINT", "NUMERIC(18, 2)", "TIMESTAMP", "TIMESTAMP WITH TIME ZONE", "BOOLEAN", "DATE"]
)
@pytest.mark.parametrize("sent", [pa.null(), pa.string(), pa.float64()], ids=str)
def test_a_column_without_a_value_fits_whatever_its_type(
    warehouse: Warehouse, kind: str, sent: Any
) -> None:
    warehouse.execute(f"CREATE TABLE t (day DATE, x {kind})")
    load = warehouse.write(T, "2026-05-12", one(x=pa.array([None], sent)))
    assert warehouse.rows("SELECT x FROM t") == [(None,)]
    assert load.rows_after == 1


# names

ODD = [
    "order",
    "5_stars",
    "Group",
    'a"b',
    "naïve",
    "x" * 63,
    'x"; drop table t; --',
    "a b",
    "{brace}",
    "%s",
    "$1",
    "a'b",
    "a\\b",
    "select",
]


@pytest.mark.parametrize("name", ODD, ids=range(len(ODD)))
def test_a_column_may_have_any_name(warehouse: Warehouse, name: str) -> None:
    keyed = table(unique_key=(name,))
    if not warehouse.takes(name):
        with pytest.raises(DeclarationError, match="cannot be used"):
            warehouse.write(keyed, "2026-05-12", pa.table({name: [1, 2], "day": [DAY, DAY]}))
        return
    for _ in range(2):
        warehouse.write(keyed, "2026-05-12", pa.table({name: [1, 2], "day": [DAY, DAY]}))
    assert list(warehouse.columns("t") or {}) == [name, "day"]
    with pytest.raises(BadRows):
        warehouse.write(keyed, "2026-05-12", pa.table({name: [1, 1], "day": [DAY, DAY]}))
    assert warehouse.count("t") == 2


@pytest.mark.parametrize("name", ODD, ids=range(len(ODD)))
def test_a_schema_a_table_and_a_slice_column_may_have_any_name(
    warehouse: Warehouse, name: str
) -> None:
    schema = name if warehouse.any_schema or not {"'", '"'} & set(name) else "odd"
    odd = Table(schema, SliceColumn(name, "date"), schema=schema, dimensions=("region",))
    if not warehouse.takes_schema(name):
        with pytest.raises((DeclarationError, WriteFailed)):
            warehouse.write(
                odd, "2026-05-12", pa.table({name: [DAY], "region": ["eu"]}), fixed={"region": "eu"}
            )
        return
    for _ in range(2):
        load = warehouse.write(
            odd, "2026-05-12", pa.table({name: [DAY], "region": ["eu"]}), fixed={"region": "eu"}
        )
    assert (load.rows_before, load.rows_after) == (1, 1)
    assert warehouse.rows("SELECT count(*) FROM backfill.load_audit") == [(2,)]


@pytest.mark.parametrize("name", ["end", "date", "timestamp", "at", "window", "createdAt", "user"])
@pytest.mark.parametrize("kind", ["date", "timestamptz"])
def test_a_slice_column_may_be_called_like_a_word_of_sql(
    warehouse: Warehouse, name: str, kind: Any
) -> None:
    value = DAY if kind == "date" else datetime(2026, 5, 12, 23, 59, 59, 999999, tzinfo=UTC)
    sliced = Table("t", SliceColumn(name, kind))
    for _ in range(2):
        assert warehouse.write(sliced, "2026-05-12", {name: [value]}).rows_after == 1
    assert warehouse.count("t") == 1


def test_a_name_that_postgresql_would_cut_off_is_refused(postgres: Warehouse) -> None:
    for name in ("x" * 64, "ï" * 32):
        with pytest.raises(DeclarationError, match="names of 1 to 63 bytes"):
            postgres.write(T, "2026-05-12", pa.table({"day": [DAY], name: [1]}))
        with pytest.raises(DeclarationError):
            postgres.write(Table(name, DAYS), "2026-05-12", one())


def test_names_that_differ_in_case_are_one_name_or_two_as_the_engine_has_it(
    warehouse: Warehouse,
) -> None:
    both = pa.table({"day": [DAY], "id": [1], "ID": [2]})
    if warehouse.is_postgres:
        warehouse.write(T, "2026-05-12", both)
        assert warehouse.rows('SELECT id, "ID" FROM t') == [(1, 2)]
    else:
        with pytest.raises(BackfillError):
            warehouse.write(T, "2026-05-12", both)
        warehouse.write(T, "2026-05-12", one(id=1))
        warehouse.write(T, "2026-05-12", one(ID=2))
        assert warehouse.rows("SELECT id FROM t") == [(2,)]


# keys and indexes of the table itself


def test_a_table_with_a_primary_key_and_an_index_is_rewritten_twice(warehouse: Warehouse) -> None:
    warehouse.execute(
        "CREATE TABLE t (day DATE, id BIGINT PRIMARY KEY, note VARCHAR)",
        "CREATE INDEX by_note ON t (note)",
    )
    rows = {
        "day": [DAY] * 3000,
        "id": list(range(3000)),
        "note": [f"n{n % 7}" for n in range(3000)],
    }
    for _ in range(3):
        warehouse.write(T, "2026-05-12", rows)
    assert warehouse.count("t") == 3000


def test_a_table_with_a_primary_key_is_rewritten_with_a_column_added(warehouse: Warehouse) -> None:
    warehouse.execute("CREATE TABLE t (day DATE, id BIGINT PRIMARY KEY)")
    warehouse.write(table("add"), "2026-05-12", {"day": [DAY] * 3, "id": [1, 2, 3]})
    for _ in range(2):
        warehouse.write(
            table("add"), "2026-05-12", {"day": [DAY] * 3, "id": [1, 2, 3], "more": ["a", "b", "c"]}
        )
    assert warehouse.rows("SELECT id, more FROM t ORDER BY id") == [(1, "a"), (2, "b"), (3, "c")]


@pytest.mark.but(
    "snowflake",
    "bigquery",
    "databricks",
    why="Snowflake, BigQuery and Databricks enforce no primary key",
)
def test_a_key_that_another_day_holds_is_refused_and_nothing_changes(warehouse: Warehouse) -> None:
    warehouse.execute("CREATE TABLE t (day DATE, id BIGINT PRIMARY KEY)")
    warehouse.write(T, "2026-05-12", {"day": [DAY], "id": [1]})
    warehouse.write(T, "2026-05-13", {"day": [date(2026, 5, 13)], "id": [2]})
    with pytest.raises(BadRows, match="break a constraint"):
        warehouse.write(T, "2026-05-12", {"day": [DAY] * 2, "id": [1, 2]})
    assert warehouse.rows("SELECT id FROM t ORDER BY id") == [(1,), (2,)]
