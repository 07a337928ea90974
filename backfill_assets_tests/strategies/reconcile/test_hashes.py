"""The hash of a day tells values apart by itself: each pair has a day of its own, so that no other row gives it away."""

from __future__ import annotations

from datetime import date, timedelta

import pytest

from backfill_assets.errors import DeclarationError
from backfill_assets.slice import Slice
from backfill_assets.strategies.dual_write import Migration, Side
from backfill_assets.strategies.reconcile.comparing import compare, marks
from backfill_assets.table import SliceColumn, Table
from backfill_assets.window import Window
from backfill_assets_tests.warehouses import Warehouse

DAY = SliceColumn("day", kind="date")
OLD, NEW = Side(Table("analytics.old", DAY)), Side(Table("analytics.new", DAY))
FIRST = date(2026, 5, 1)
# type, what the old side has, what the new one has
PAIRS = {
    "a refund that lost its sign": ("DECIMAL(10,2)", "5.00", "-5.00"),
    "a cent beside nothing, in many digits": ("DECIMAL(38,2)", "0.00", "-0.01"),
    "no discount known and none given": ("DOUBLE PRECISION", "NULL", "0"),
    "no discount known and none given, exactly": ("DECIMAL(10,2)", "NULL", "0"),
    "nothing and not a number": ("DOUBLE PRECISION", "NULL", "'NaN'"),
    "infinite and its opposite": ("DOUBLE PRECISION", "'Infinity'", "'-Infinity'"),
    "a number that lost its sign in 32 bits": ("BIGINT", "-1", "4294967295"),
    "none and minus one": ("BIGINT", "0", "-1"),
    "true and unknown": ("BOOLEAN", "true", "NULL"),
    "an empty text and none": ("VARCHAR(10)", "''", "NULL"),
    "an instant and none": ("TIMESTAMP", "TIMESTAMP '1970-01-01 00:00:00'", "NULL"),
}


def sides(warehouse: Warehouse, kinds: str, old: list[str], new: list[str]) -> None:
    columns = ", ".join(f"v{n} {kind}" for n, kind in enumerate(kinds.split("|")))
    warehouse.execute("CREATE SCHEMA IF NOT EXISTS analytics")
    for side, rows in (("old", old), ("new", new)):
        warehouse.execute(
            f"CREATE TABLE analytics.{side} (day DATE, id BIGINT, {columns})",
            f"INSERT INTO analytics.{side} VALUES {', '.join(rows)}",
        )


def days(count: int) -> list[Slice]:
    found = [FIRST + timedelta(days=n) for n in range(count)]
    return [Slice(NEW.table, Window.day(day), partition=day.isoformat()) for day in found]


def told_apart(warehouse: Warehouse, count: int) -> list[bool]:
    found = marks(Migration("m", OLD, NEW, key=("id",)), days(count), warehouse.engine())
    return [old.checksum != new.checksum for old, new in found]


@pytest.mark.parametrize("name", PAIRS)
def test_two_values_that_are_not_the_same_have_two_hashes(warehouse: Warehouse, name: str) -> None:
    kind, old, new = PAIRS[name]
    row = f"(DATE '{FIRST}', 1, CAST({{}} AS {kind}))"
    sides(warehouse, kind, [row.format(old)], [row.format(new)])
    assert told_apart(warehouse, 1) == [True]


@pytest.mark.parametrize("kind", ["DECIMAL(10,2)", "DECIMAL(38,2)", "BIGINT", "DOUBLE PRECISION"])
def test_two_columns_that_change_together_do_not_hide_each_other(
    warehouse: Warehouse, kind: str
) -> None:
    changes = [("1", "1", "10000", "10000"), ("NULL", "NULL", "0", "0"), ("5", "-5", "-5", "5")]
    kinds = "|".join([kind] * 4)
    row = "(DATE '{}', 1, {}, {}, {}, {})"
    old, new = list[str](), list[str]()
    for n, (a, b, c, d) in enumerate(changes):
        day = FIRST + timedelta(days=n)
        # in places next to each other, and two apart
        old.append(row.format(day, a, b, a, b))
        new.append(row.format(day, c, d, c, d))
    sides(warehouse, kinds, old, new)
    assert told_apart(warehouse, 3) == [True] * 3


def test_two_values_that_change_places_between_two_rows_are_seen(warehouse: Warehouse) -> None:
    row = f"(DATE '{FIRST}', {{}}, {{}})"
    sides(
        warehouse,
        "BIGINT",
        [row.format(119, 148), row.format(2752, 294)],
        [row.format(119, 294), row.format(2752, 148)],
    )
    assert told_apart(warehouse, 1) == [True]


def test_equal_rows_have_equal_hashes_whatever_their_order_and_scale(warehouse: Warehouse) -> None:
    row = f"(DATE '{FIRST}', {{}}, {{}})"
    warehouse.execute("CREATE SCHEMA IF NOT EXISTS analytics")
    for side, kind in (("old", "DECIMAL(10,2)"), ("new", "DECIMAL(20,4)")):
        rows = [row.format(1, "1.50"), row.format(2, "-0.10"), row.format(3, "NULL")]
        warehouse.execute(
            f"CREATE TABLE analytics.{side} (day DATE, id BIGINT, v {kind})",
            f"INSERT INTO analytics.{side} VALUES {', '.join(rows if side == 'old' else reversed(rows))}",
        )
    assert told_apart(warehouse, 1) == [False]


def test_totals_that_differ_send_a_day_to_its_rows_whatever_the_hash_says(
    warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    from backfill_assets.strategies.reconcile import marking

    row = f"(DATE '{FIRST}', 1, {{}})"
    sides(warehouse, "DECIMAL(10,2)", [row.format("5")], [row.format("-5")])
    monkeypatch.setattr(marking.Marked, "total", lambda *_: "'0'")
    migration = Migration("m", OLD, NEW, key=("id",), measures=("v0",))
    ((day, _),) = compare(migration, days(1), warehouse.engine(), run_id="r", who="t")
    assert (day.verdict, day.differing) == ("differs", 1)


def test_a_table_is_not_compared_with_itself(warehouse: Warehouse) -> None:
    row = f"(DATE '{FIRST}', 1, 1)"
    sides(warehouse, "BIGINT", [row], [row])
    itself = Migration("m", Side(NEW.table), Side(NEW.table, warehouse.url), key=("id",))
    with pytest.raises(DeclarationError, match="are one table, which always agrees with itself"):
        marks(itself, days(1), warehouse.engine())
