"""Both sides of a migration compared in every engine, and every engine compared with DuckDB."""

from __future__ import annotations

from datetime import datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from backfill_assets.errors import SchemaMismatch
from backfill_assets.slice import Slice
from backfill_assets.strategies.dual_write import Migration, Side, Tolerance
from backfill_assets.strategies.reconcile.comparing import compare, marks
from backfill_assets.strategies.reconcile.day import DayCompared, KeyFound
from backfill_assets.table import SliceColumn, Table
from backfill_assets.window import Window
from backfill_assets_tests.warehouses import Warehouse, at

CUT = SliceColumn("at", "timestamptz")
DAY = "2026-05-12"
NOON = at(f"{DAY} 12:00")
TYPES = {
    "id": pa.int64(),
    "at": pa.timestamp("us", tz="UTC"),
    "amount": pa.decimal128(18, 2),
    "note": pa.string(),
}


def orders(*rows: tuple[Any, ...], **types: Any) -> pa.Table:
    """Return rows of id, at, amount and note, and of more columns of these types."""
    fields = {**TYPES, **types}
    columns = zip(*rows, strict=True) if rows else [[] for _ in fields]
    return pa.table({n: pa.array(list(c), t) for (n, t), c in zip(fields.items(), columns, strict=True)})  # fmt: skip


def order(id_: int | None, amount: str | None = "1.50", note: str | None = "x", *more: Any, when: datetime = NOON) -> tuple[Any, ...]:  # fmt: skip
    return (id_, when, None if amount is None else Decimal(amount), note, *more)


def two(old: Warehouse, new: Warehouse, old_rows: pa.Table, new_rows: pa.Table, *days: str, **declared: Any) -> Migration:  # fmt: skip
    tables = Table("orders_old", CUT), Table("orders_new", CUT)
    days = days or (DAY,)
    for warehouse, table, rows in ((old, tables[0], old_rows), (new, tables[1], new_rows)):
        for day in days:
            window = Window.day(day)
            inside = [window.contains(moment) for moment in rows.column("at").to_pylist()]
            if any(inside):
                warehouse.write(table, day, rows.filter(pa.array(inside)))
    side = Side(tables[0], None if old is new else old.url)
    return Migration("orders", side, Side(tables[1]), **{"key": "id", **declared})


def compared(migration: Migration, new: Warehouse, *days: str) -> list[tuple[DayCompared, list[KeyFound]]]:  # fmt: skip
    found = list(
        compare(migration, slices(migration, *days), new.engine(), run_id="r", who="a test")
    )
    for day, _ in found:
        assert day.old.rows == day.equal + day.differing + day.only_old
        assert day.new.rows == day.equal + day.differing + day.only_new
    return found


def slices(migration: Migration, *days: str) -> list[Slice]:
    return [Slice(migration.new.table, Window.day(day), partition=day) for day in days or (DAY,)]


@pytest.fixture(params=["beside_itself", "beside_duckdb"])
def old(request: pytest.FixtureRequest, warehouse: Warehouse, tmp_path: Path) -> Warehouse:
    """The warehouse of the old side: the same, or a DuckDB."""
    if request.param == "beside_itself":
        return warehouse
    if not warehouse.engine().spelling.text_number:
        pytest.skip("what it holds is compared inside it only")
    return Warehouse(f"duckdb:///{tmp_path}/legacy.duckdb")


def test_what_differs_is_named_by_key_and_column_and_the_sums_add_up(
    warehouse: Warehouse, old: Warehouse
) -> None:
    rows = [order(n) for n in range(20)] + [order(None), order(None, None, None)]
    others = [*rows[:17], order(17, "2.25"), order(18, note=None), *rows[20:], order(None, "7")]
    migration = two(old, warehouse, orders(*rows), orders(*others), measures="amount")
    ((day, keys),) = compared(migration, warehouse)
    assert (day.equal, day.differing, day.only_old, day.only_new) == (19, 2, 1, 1)
    assert day.columns == {"amount": 1, "note": 1}
    assert day.verdict == "differs"
    assert day.new.sums["amount"] - day.old.sums["amount"] == Decimal("6.25")
    named = {key.key["id"]: key for key in keys}
    assert set(named) == {"17", "18", "19", None}
    assert (named["17"].old["amount"], named["17"].new["amount"]) == ("1.5", "2.25")
    assert (named["18"].old["note"], named["18"].new["note"]) == ("x", None)
    assert (named["19"].kind, named[None].kind) == ("only_old", "only_new")


def test_copies_are_a_multiset(warehouse: Warehouse, old: Warehouse) -> None:
    migration = two(
        old, warehouse,
        orders(*[order(1)] * 5, *[order(2)] * 2), orders(*[order(1)] * 2, *[order(2)] * 3, order(1, "3")),
    )  # fmt: skip
    ((day, keys),) = compared(migration, warehouse)
    assert (day.equal, day.differing, day.only_old, day.only_new) == (4, 1, 2, 1)
    assert {(key.kind, key.key["id"], key.copies) for key in keys} == {
        ("differs", "1", 1),
        ("only_old", "1", 2),
        ("only_new", "2", 1),
    }


def test_texts_are_compared_by_every_letter(warehouse: Warehouse, old: Warehouse) -> None:
    texts = ["a", "a", "", "é", "a|b^", "~"]
    others = ["A", "a ", None, "e", "a|b^", None]
    migration = two(
        old, warehouse,
        orders(*(order(n, note=text) for n, text in enumerate(texts))),
        orders(*(order(n, note=text) for n, text in enumerate(others))),
    )  # fmt: skip
    ((day, keys),) = compared(migration, warehouse)
    assert (day.equal, day.differing) == (1, 5)
    assert {key.key["id"]: (key.old["note"], key.new["note"]) for key in keys} == {
        str(n): (a, b) for n, (a, b) in enumerate(zip(texts, others, strict=True)) if n != 4
    }


def test_tolerances_pass_what_they_say_and_no_more(warehouse: Warehouse, old: Warehouse) -> None:
    more = {"f": pa.float64(), "loud": pa.string(), "w": pa.timestamp("us")}
    second = datetime(2026, 5, 12, 1, 2, 3)
    same = [order(n, "0.29", None, 0.1 + 0.2, "Ab  ", second) for n in range(6)]
    others = [
        order(0, "0.30", "", 0.3, "aB", second + timedelta(microseconds=999_999)),
        order(1, "0.31", "", 0.3, "aB", second),
        order(2, "0.29", " ", 0.3, "aB", second),
        order(3, "0.29", None, 0.31, "aB", second),
        order(4, "0.29", None, 0.3, "abc", second),
        order(5, "0.29", None, 0.3, "aB", second + timedelta(seconds=1)),
    ]
    migration = two(
        old, warehouse, orders(*same, **more), orders(*others, **more),
        tolerances={
            "amount": Tolerance(absolute=0.01),
            "note": Tolerance(null_is_empty=True),
            "f": Tolerance(relative=1e-6),
            "loud": Tolerance(ignore_case=True, ignore_trailing_space=True),
            "w": Tolerance(time="second"),
        },
    )  # fmt: skip
    ((day, keys),) = compared(migration, warehouse)
    assert {key.key["id"]: key.columns for key in keys} == {
        "1": ("amount",), "2": ("note",), "3": ("f",), "4": ("loud",), "5": ("w",),
    }  # fmt: skip
    assert (day.equal, day.differing) == (1, 5)


def test_equal_rows_have_equal_marks_of_one_day_and_of_many(
    warehouse: Warehouse, old: Warehouse
) -> None:
    days = ["2026-05-11", DAY, "2026-05-13"]
    more = {"f": pa.float64(), "yes": pa.bool_(), "d": pa.date32(), "w": pa.timestamp("us")}
    rows = [
        order(n, amount, "x", f, n % 2 == 0, datetime(2026, 2, 28).date(), datetime(2026, 5, 12, 0, 0, 0, micro), when=at(f"{day} 00:00"))
        for day in days
        for n, (amount, f, micro) in enumerate(
            [("-0.19", 0.1, 0), ("0", 1e15, 100_400), ("1e9", 5.0912171146239056e16, 1), (None, None, 0), ("100", -1.5e-7, 5)]
        )
    ]  # fmt: skip
    both = orders(*rows, **more), orders(*rows[::-1], **more)
    migration = two(old, warehouse, *both, *days, measures=("amount",))
    found = marks(migration, slices(migration, *days), warehouse.engine())
    assert [(a.rows, b.rows) for a, b in found] == [(5, 5)] * 3
    assert [a for a, _ in found] == [b for _, b in found]
    assert found[1:2] == marks(migration, slices(migration, DAY), warehouse.engine())
    assert [day.verdict for day, _ in compared(migration, warehouse, *days)] == ["equal"] * 3


@pytest.mark.only("sqlserver")
def test_an_engine_without_the_text_that_others_give_refuses_a_comparison_with_them(
    warehouse: Warehouse, tmp_path: Path
) -> None:
    legacy = Warehouse(f"duckdb:///{tmp_path}/legacy.duckdb")
    migration = two(legacy, warehouse, orders(order(1)), orders(order(1)))
    with pytest.raises(SchemaMismatch, match="have types that two engines do not spell alike"):
        compared(migration, warehouse)
