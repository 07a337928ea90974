"""Days without rows by rule, and what a table may be declared to hold."""

from datetime import date

import pytest

from backfill_assets.closed_days import is_closed
from backfill_assets.errors import DeclarationError
from backfill_assets.expectations import NoRows, RowCount, Source, Totals
from backfill_assets.io_managers.declaration import declared_table, table_metadata
from backfill_assets.table import SliceColumn, Table
from backfill_assets.window import Window

INDEPENDENCE_DAY_OBSERVED = date(2026, 7, 3)
GOOD_FRIDAY = date(2026, 4, 3)
A_SUNDAY = date(2026, 5, 10)
A_WEDNESDAY = date(2026, 5, 6)


@pytest.mark.parametrize(
    ("rule", "closed", "open_"),
    [
        ("sunday", A_SUNDAY, A_WEDNESDAY),
        ("holidays:US", INDEPENDENCE_DAY_OBSERVED, GOOD_FRIDAY),
        ("holidays:DE-BY", GOOD_FRIDAY, A_WEDNESDAY),
        ("exchange:XNYS", GOOD_FRIDAY, A_WEDNESDAY),
        ("exchange:XNYS", date(1999, 1, 1), date(1999, 1, 4)),
    ],
)
def test_a_rule_closes_its_days_and_no_others(rule, closed, open_):
    assert is_closed(closed, [rule])
    assert not is_closed(open_, [rule])


def test_a_slice_without_rows_is_right_on_a_closed_day_of_the_tables_own_zone():
    table = Table("a.b", SliceColumn("at", zone="Asia/Tokyo"), closed=("sunday",))
    assert table.empty_is_expected(Window.day(A_SUNDAY, "Asia/Tokyo"))
    assert not table.empty_is_expected(Window.day(A_SUNDAY, "UTC"))
    assert not table.empty_is_expected(Window.day(A_WEDNESDAY, "Asia/Tokyo"))


def test_a_table_keeps_what_it_expects_through_an_assets_metadata():
    table = Table(
        "a.b",
        SliceColumn("day", "date"),
        source=Source("staging.x", on="event_at", ingested_at="loaded_at"),
        expects=(
            RowCount(against=Source("a.c", on="day")),
            RowCount(against="last_load", tolerance=0, absolute=5, severity="warn"),
            Totals(("amount",)),
            NoRows("no_negative_amounts", "SELECT * FROM slice_rows WHERE amount < 0"),
        ),
        duplicate_keys="warn",
        closed=("sunday", "holidays:US"),
        hours=(8, 20),
    )
    again = declared_table(
        table_metadata(table), name="b", schema="a", slice_column=table.slice_column, dimensions=()
    )
    assert again == table


@pytest.mark.parametrize(
    ("declare", "sentence"),
    [
        (lambda: RowCount(tolerance=1.5), "tolerates 150%"),
        (lambda: RowCount(tolerance=-0.1), "tolerates -10%"),
        (lambda: RowCount(tolerance=float("nan")), "tolerates nan%"),
        (lambda: RowCount(absolute=-1), "tolerates -1"),
        (lambda: RowCount(against=-5), "expects -5 rows"),
        (lambda: RowCount(severity="loud"), "severity 'loud'"),  # pyright: ignore[reportArgumentType]
        (lambda: Totals(()), "name no column"),
        (lambda: Totals((1,)), "Name columns"),  # pyright: ignore[reportArgumentType]
        (lambda: RowCount(tolerance="1%"), "tolerance='1%'"),  # pyright: ignore[reportArgumentType]
        (lambda: RowCount(against=12.5), "expects 12.5 rows"),  # pyright: ignore[reportArgumentType]
        (lambda: NoRows("prüfung", "SELECT * FROM slice_rows"), "cannot be called 'prüfung'"),
        (lambda: Source("x", on=None), "no on"),  # pyright: ignore[reportArgumentType]
        (lambda: Source("", on="day"), "no sql"),
        (lambda: Source("postgresql://elsewhere/db", on="day"), "another warehouse"),
        (lambda: NoRows("row_count", "SELECT * FROM slice_rows"), "cannot be called 'row_count'"),
        (lambda: NoRows("a rule", "SELECT * FROM slice_rows"), "cannot be called 'a rule'"),
        (lambda: NoRows("no_zero", "SELECT 1"), "does not read the slice"),
        (lambda: NoRows("no_zero", "DELETE FROM slice_rows"), "is no query"),
        (lambda: RowCount(against="staging.orders"), "which is no query"),
        (lambda: Table("a.b", expects=(RowCount(),)), "compares with its source and declares none"),
        (lambda: Table("a.b", closed=("someday",)), "'someday' is no weekday"),
        (lambda: is_closed(A_SUNDAY, ["holidays:XX"]), "holidays of 'XX' are not known"),
        (lambda: is_closed(A_SUNDAY, ["exchange:NOWHERE"]), "exchange 'NOWHERE' is not known"),
        (lambda: Table("a.b", hours=(20, 8)), "from 20 to 8 o'clock"),
        (lambda: Table("a.b", expects=({"expect": "nothing"},)), "Give one of"),  # pyright: ignore[reportArgumentType]
        (
            lambda: Table("a.b", expects=({"expect": "row_count", "tolerence": 1},)),  # pyright: ignore[reportArgumentType]
            "RowCount has no 'tolerence'",
        ),
    ],
)
def test_what_cannot_be_expected_is_refused_where_it_is_declared(declare, sentence):
    with pytest.raises(DeclarationError, match=sentence):
        declare()
