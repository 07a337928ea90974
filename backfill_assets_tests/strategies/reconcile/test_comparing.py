"""What is the same on both sides, and what is said of what is not: in one warehouse, in two, and of files."""

from __future__ import annotations

from collections import Counter
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from backfill_assets.errors import BackfillError, MissingTable, SchemaMismatch, SliceBusy
from backfill_assets.strategies.dual_write import FileSide, Side, Tolerance
from backfill_assets.strategies.reconcile import apart, comparing
from backfill_assets.table import SliceColumn
from backfill_assets_tests.strategies.reconcile.two_sides import DAY, Two, told
from backfill_assets_tests.warehouses import Warehouse, with_options

ORDERS = 'id bigint, "at" timestamptz, amount numeric(10,2), note text'
NOON = f"'{DAY} 12:00:00+00'"


def order(id_: int | str, amount: object = "1.50", note: str = "'x'", at: str = NOON) -> str:
    return f"({id_}, {at}, {amount}, {note})"


def test_three_rows_of_many_are_named_by_day_key_and_column(two: Two) -> None:
    days = [f"2026-05-{day}" for day in (10, 11, 12, 13)]
    rows = {(n, day): order(n, at=f"'{day} 03:00:00+00'") for n in range(500) for day in days}
    changed = dict(rows)
    changed[7, "2026-05-10"] = order(7, "2.50", at="'2026-05-10 03:00:00+00'")
    changed[8, "2026-05-12"] = order(8, note="NULL", at="'2026-05-12 03:00:00+00'")
    del changed[9, "2026-05-12"]
    two.have(ORDERS, list(rows.values()), list(changed.values()), measures="amount")
    found = two.compared(*days)
    assert [(day.partition_key, day.verdict, *told(day)) for day, _ in found] == [
        ("2026-05-10", "differs", 499, 1, 0, 0),
        ("2026-05-11", "equal", 500, 0, 0, 0),
        ("2026-05-12", "differs", 498, 1, 1, 0),
        ("2026-05-13", "equal", 500, 0, 0, 0),
    ]
    assert found[0][0].columns == {"amount": 1}
    assert found[2][0].columns == {"note": 1}
    assert found[0][0].old.sums == {"amount": Decimal("750.00")}
    assert found[0][0].new.sums == {"amount": Decimal("751.00")}
    (one,) = found[0][1]
    assert (one.kind, one.key, one.columns) == ("differs", {"id": "7"}, ("amount",))
    assert one.old == {"amount": "1.5", "note": "x", "at": "2026-05-10 03:00:00"}
    assert one.new["amount"] == "2.5"
    gone, other = sorted(found[2][1], key=lambda key: key.kind, reverse=True)
    assert (gone.kind, gone.key, gone.new) == ("only_old", {"id": "9"}, {})
    assert (other.kind, other.key, other.old["note"], other.new["note"]) == ("differs", {"id": "8"}, "x", None)  # fmt: skip


_ROWS = st.lists(
    st.tuples(
        st.sampled_from(["1", "2", "NULL"]),
        st.sampled_from(["'a'", "'b'", "''", "NULL"]),
        st.sampled_from(["0", "1.10", "-0.19", "NULL"]),
    ),
    max_size=12,
)


@settings(
    max_examples=12,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(old=_ROWS, new=_ROWS)
def test_any_two_multisets_are_told_apart_as_python_counts_them(
    two: Two, old: list[tuple[str, str, str]], new: list[tuple[str, str, str]]
) -> None:
    columns = 'id bigint, part text, amount numeric(10,2), "at" timestamptz'
    sides = [[f"({', '.join(row)}, {NOON})" for row in rows] for rows in (old, new)]
    two.have(columns, *sides, key=("id", "part"))
    ((day, keys),) = two.compared(DAY)
    left_old, left_new = Counter(old) - Counter(new), Counter(new) - Counter(old)
    old_keys, new_keys = (Counter[tuple[str, str]]() for _ in range(2))
    for left, by_key in ((left_old, old_keys), (left_new, new_keys)):
        for (id_, part, _), copies in left.items():
            by_key[id_, part] += copies
    paired = (old_keys & new_keys).total()
    assert told(day) == (
        (Counter(old) & Counter(new)).total(),
        paired,
        left_old.total() - paired,
        left_new.total() - paired,
    )
    assert (day.old.rows, day.new.rows) == (len(old), len(new))
    assert (day.old.checksum == day.new.checksum) == (Counter(old) == Counter(new))
    named: Counter[tuple[str | None, str | None]] = Counter()
    for key in keys:
        named[key.key["id"], key.key["part"]] += key.copies
    plain = {"NULL": None}
    wrong = old_keys | new_keys
    assert named == Counter(
        {(plain.get(i, i), None if p == "NULL" else p.strip("'")): n for (i, p), n in wrong.items()}
    )


def test_copies_of_a_row_are_counted_and_never_multiplied(two: Two) -> None:
    two.have(ORDERS, [order(1)] * 5 + [order(2)] * 3, [order(1)] * 2 + [order(2)] * 4)
    day, keys = two.compared(DAY)[0]
    assert told(day) == (5, 0, 3, 1)
    assert [(k.kind, k.key["id"], k.copies) for k in keys] == [("only_old", "1", 3), ("only_new", "2", 1)]  # fmt: skip


def test_twins_are_paired_in_order_and_may_lie_within_their_tolerance(two: Two) -> None:
    two.have(
        ORDERS,
        [order(1, "1.00"), order(1, "5.00"), order(1, "9.00")],
        [order(1, "5.04"), order(1, "1.04"), order(1, "9.50")],
        tolerances={"amount": Tolerance(absolute=0.05)},
    )
    day, keys = two.compared(DAY)[0]
    assert told(day) == (2, 1, 0, 0)
    assert (keys[0].old["amount"], keys[0].new["amount"]) == ("9", "9.5")


def test_the_largest_difference_comes_first_and_no_more_keys_are_kept_than_declared(
    two: Two,
) -> None:
    two.have(
        ORDERS,
        [order(n, n) for n in range(1, 10)],
        [order(n, n * 2) for n in range(1, 10)],
        measures="amount",
        keep_keys=3,
    )
    day, keys = two.compared(DAY)[0]
    assert day.differing == 9
    assert [key.key["id"] for key in keys] == ["9", "8", "7"]
    assert two.keys(keep_keys=0) == []


def test_the_same_rows_are_equal_in_any_order_and_with_columns_in_another_order(two: Two) -> None:
    two.have(
        ORDERS,
        [f"('x', 1.50, {NOON}, {n})" for n in (3, 1, 2)],
        [order(n) for n in (1, 2, 3)],
        old_columns='note text, amount numeric(10,2), "at" timestamptz, id bigint',
    )
    assert two.day().verdict == "equal"
    assert two.day().old.checksum == two.day().new.checksum


def test_both_sides_empty_are_equal_and_one_side_empty_is_missing(two: Two) -> None:
    two.have(ORDERS, [order(1), order(2)], [])
    assert (two.day().verdict, told(two.day())) == ("missing", (0, 0, 2, 0))
    assert (two.day("2026-05-13").verdict, two.day("2026-05-13").old.rows) == ("equal", 0)


def test_a_share_below_the_threshold_is_within(two: Two) -> None:
    two.have(ORDERS, [order(n) for n in range(10)], [order(n, n and 1.5) for n in range(10)])
    assert two.day(threshold=0.1).verdict == "within"
    assert two.day(threshold=0.09).verdict == "differs"


def test_values_that_look_unlike_and_are_the_same(two: Two) -> None:
    columns = (
        'id bigint, "at" timestamptz, exact {}, wide numeric(38,9), tall {}, short numeric(3,3), f double precision,'
        " yes boolean, d date, t time, w timestamp, u uuid, b bytea, c text"
    )
    rows = [
        f"({n}, {NOON}, {{}}, {wide}, {n}, 0.5, {f}, true, '2026-02-28', '10:00:00.5', '2026-05-12 00:00:00.1004',"
        " '6b3e1f0a-0c52-4c58-9c59-0d1b8ad2c9d1', 'ab', 'x|^~')"
        for n, (wide, f) in enumerate(
            [
                ("-0.19", "0.1"),
                ("0", "'NaN'"),
                ("12345678901234567890123456789.123456789", "'Infinity'"),
                ("-0.000000001", "'-Infinity'"),
                ("1e9", "-0.0"),
                ("NULL", "1e15"),
                ("100", "1234567890123456.5"),
                ("1.10", "5.0912171146239056e+16"),
                ("0", "1e300"),
                ("0", "5e-324"),
                ("0", "1e-5"),
                ("0", "NULL"),
            ]
        )
    ]
    two.have(
        columns.format("numeric(10,2)", "integer"),
        [row.format("1.1") for row in rows],
        [row.format("1.10").replace("-0.0,", "0.0,") for row in rows],
        old_columns=columns.format("numeric(12,4)", "bigint"),
    )
    day, keys = two.compared(DAY)[0]
    assert keys == []
    assert day.old.checksum == day.new.checksum


ALIKE = [
    ("numeric(38,9)", "-0.19", "0"),
    ("numeric(38,9)", "0.1", "0.100000001"),
    ("double precision", "0.30000000000000004", "0.3"),
    ("double precision", "'NaN'", "NULL"),
    ("double precision", "'NaN'", "'Infinity'"),
    ("double precision", "'Infinity'", "'-Infinity'"),
    ("timestamp", "'2026-05-12 00:00:00.000001'", "'2026-05-12 00:00:00'"),
    ("timestamptz", "'2026-05-12 00:00:00+02'", "'2026-05-12 00:00:00+00'"),
    ("text", "'A'", "'a'"),
    ("text", "'a '", "'a'"),
    ("text", "''", "NULL"),
    ("text", "'é'", "'e'"),
    ("text", "'null'", "NULL"),
    ("text", "'~'", "NULL"),
    ("boolean", "false", "NULL"),
    ("bytea", "'ab'", "'AB'"),
    ("bigint", "9007199254740993", "9007199254740992"),
]


def test_values_that_look_alike_and_are_not_the_same(two: Two) -> None:
    columns = ", ".join(f"v{n} {kind}" for n, (kind, _, _) in enumerate(ALIKE))
    first = [old for _, old, _ in ALIKE]
    rows = [[*first[:n], other, *first[n + 1 :]] for n, (_, _, other) in enumerate(ALIKE)]
    two.have(
        f'id bigint, "at" timestamptz, {columns}',
        [f"({n}, {NOON}, {', '.join(first)})" for n in range(len(ALIKE))],
        [f"({n}, {NOON}, {', '.join(row)})" for n, row in enumerate(rows)],
    )
    day, keys = two.compared(DAY)[0]
    assert told(day) == (0, len(ALIKE), 0, 0)
    assert {key.key["id"]: key.columns for key in keys} == {
        str(n): (f"v{n}",) for n in range(len(ALIKE))
    }


def test_values_that_change_places_between_rows_or_columns_are_seen(two: Two) -> None:
    columns = 'id bigint, "at" timestamptz, a text, b text'
    two.have(
        columns,
        [f"(1, {NOON}, 'x', 'y')", f"(2, {NOON}, 'a|', 'b')", f"(3, {NOON}, 'p', 'q')"],
        [f"(1, {NOON}, 'y', 'x')", f"(2, {NOON}, 'a', '|b')", f"(3, {NOON}, 'p', 'q')"],
    )
    assert told(two.day()) == (1, 2, 0, 0)


TOLERANT = [
        ("numeric(10,2)", Tolerance(absolute=0.01), ("0.29", "0.30"), ("0.29", "0.31")),
        ("numeric", Tolerance(absolute=0.01), ("0.29", "0.30"), ("0.29", "0.31")),
    ("numeric(38,9)", Tolerance(relative=0.01), ("100", "99"), ("100", "98.999999999")),
        ("bigint", Tolerance(absolute=1), ("9007199254740993", "9007199254740992"), ("9007199254740993", "9007199254740991")),
        ("double precision", Tolerance(absolute=1e-9), ("0.30000000000000004", "0.3"), ("0.3000001", "0.3")),
        ("double precision", Tolerance(relative=0.5), ("'Infinity'", "'Infinity'"), ("'Infinity'", "5")),
        ("double precision", Tolerance(absolute=1), ("'NaN'", "'NaN'"), ("'NaN'", "1")),
        ("double precision", Tolerance(relative=0.1), ("5e-324", "5e-324"), ("1e308", "-1e308")),
        ("numeric(10,2)", Tolerance(as_float=True), ("0.30", "0.3"), ("0.3", "0.31")),
        ("numeric(10,2)", Tolerance(absolute=1), ("NULL", "NULL"), ("NULL", "0")),
        ("timestamp", Tolerance(time="second"), ("'2026-05-12 01:02:03.9'", "'2026-05-12 01:02:03'"), ("'2026-05-12 01:02:03'", "'2026-05-12 01:02:04'")),
        ("timestamptz", Tolerance(time="millisecond"), ("'2026-05-12 01:02:03.1004+00'", "'2026-05-12 03:02:03.1+02'"), ("'2026-05-12 01:02:03.101+00'", "'2026-05-12 01:02:03.1+00'")),
        ("timestamp", Tolerance(time="day"), ("'2026-05-12 01:02:03'", "'2026-05-12 23:00:00'"), ("'2026-05-12'", "'2026-05-13'")),
        ("text", Tolerance(ignore_case=True), ("'ÄB'", "'äb'"), ("'a'", "'b'")),
        ("text", Tolerance(ignore_trailing_space=True), ("'a  '", "'a'"), ("' a'", "'a'")),
        ("text", Tolerance(null_is_empty=True), ("NULL", "''"), ("NULL", "' '")),
        ("text", Tolerance(null_is_empty=True, ignore_trailing_space=True), ("NULL", "'  '"), ("NULL", "'x'")),
]  # fmt: skip


def test_what_a_tolerance_passes_and_what_it_does_not(two: Two) -> None:
    numbered = list(enumerate(TOLERANT))
    columns = ", ".join(f"v{n} {kind}" for n, (kind, *_) in numbered)
    both: tuple[list[str], list[str]] = ([], [])
    for side, rows in enumerate(both):
        same = [passing[side] for _, _, passing, _ in TOLERANT]
        for n, (_, _, _, other) in numbered:
            row = [*same[:n], other[side], *same[n + 1 :]]
            rows.append(f"({n}, {NOON}, {', '.join(row)})")
        rows.append(f"(99, {NOON}, {', '.join(same)})")
    two.have(
        f'id bigint, "at" timestamptz, {columns}',
        *both,
        tolerances={f"v{n}": tolerance for n, (_, tolerance, *_) in numbered},
    )
    day, keys = two.compared(DAY)[0]
    assert {key.key["id"]: key.columns for key in keys} == {str(n): (f"v{n}",) for n, _ in numbered}
    assert told(day) == (1, len(TOLERANT), 0, 0)


def test_a_float_and_a_decimal_are_compared_only_where_that_is_declared(two: Two) -> None:
    columns = 'id bigint, "at" timestamptz, v {}'
    two.have(
        columns.format("numeric(18,4)"),
        [f"(1, {NOON}, 0.1)", f"(2, {NOON}, 0.2)"],
        [f"(1, {NOON}, 0.1)", f"(2, {NOON}, 0.2001)"],
        old_columns=columns.format("double precision"),
    )
    with pytest.raises(SchemaMismatch, match=r"'v' \(.*\) are inexact|'v' \(.*\) is inexact"):
        two.day()
    assert told(two.day(tolerances={"v": Tolerance(as_float=True)})) == (1, 1, 0, 0)
    assert two.day(tolerances={"v": Tolerance(as_float=True)}).old.rows == 2
    assert told(two.day(tolerances={"v": Tolerance(absolute=0.001)})) == (2, 0, 0, 0)


def test_a_row_at_midnight_belongs_to_the_local_day_it_begins_on_days_of_23_and_25_hours(
    two: Two,
) -> None:
    new_york = SliceColumn("at", "timestamptz", "America/New_York")
    midnights = ["2026-03-08 05:00", "2026-03-09 04:00", "2026-11-01 04:00", "2026-11-02 05:00"]
    rows = [order(n, at=f"'{at}:00+00'") for n, at in enumerate(midnights)]
    last = [order(n, at=f"'{at}:59.999999+00'") for n, at in ((10, "2026-03-09 03:59"), (11, "2026-11-02 04:59"))]  # fmt: skip
    two.have(ORDERS, rows + last, rows + last, cuts=(new_york, new_york))
    days = ["2026-03-08", "2026-03-09", "2026-11-01", "2026-11-02"]
    assert [day.old.rows for day, _ in two.compared(*days)] == [2, 1, 2, 1]
    assert [two.day(day).new.rows for day in days] == [2, 1, 2, 1]


def test_a_row_that_slips_over_midnight_is_missing_on_one_day_and_too_many_on_the_next(
    two: Two,
) -> None:
    two.have(
        ORDERS,
        [order(1, at="'2026-05-12 23:30:00+00'"), order(2)],
        [order(1, at="'2026-05-13 00:30:00+00'"), order(2)],
    )
    assert [told(day) for day, _ in two.compared("2026-05-12", "2026-05-13")] == [
        (1, 0, 1, 0),
        (0, 0, 0, 1),
    ]


def test_sides_may_be_cut_by_an_instant_and_by_a_date_of_another_name(two: Two) -> None:
    two.have(
        "id bigint, day date, amount numeric(10,2), note text",
        [order(1, at="'2026-05-12 00:00:00+02'"), order(2, at="'2026-05-12 23:59:59+02'")],
        [order(1, at="'2026-05-12'"), order(2, at="'2026-05-12'")],
        old_columns=ORDERS,
        cuts=(
            SliceColumn("at", "timestamptz", "Europe/Paris"),
            SliceColumn("day", "date", "Europe/Paris"),
        ),
    )
    assert (told(two.day()), two.day().columns) == ((2, 0, 0, 0), {})


def test_rows_without_a_day_are_counted_on_each_side_and_belong_to_no_day(two: Two) -> None:
    two.have(ORDERS, [order(1), order(2, at="NULL")], [order(1)])
    assert two.null_days() == (1, 0)
    assert two.day().verdict == "equal"


def test_names_that_need_quotes_are_quoted(two: Two) -> None:
    columns = '"5 id" bigint, "at" timestamptz, "or""der" numeric(10,2), "Group" text'
    two.have(
        columns,
        [order(1), order(2)],
        [order(1), order(2, "9")],
        key="5 id",
        measures='or"der',
        tolerances={"Group": Tolerance(ignore_case=True)},
    )
    day, keys = two.compared(DAY)[0]
    assert day.columns == {'or"der': 1}
    assert keys[0].key == {"5 id": "2"}


def test_a_key_whose_name_differs_in_case_only_is_the_same_key(two: Two) -> None:
    two.have(
        ORDERS, [order(1), order(2)], [order(1), order(2)], old_columns=ORDERS.replace("id", '"ID"')
    )
    assert two.day().verdict == "equal"


def test_marks_are_those_that_a_comparison_gives_for_one_day_and_for_many(two: Two) -> None:
    days = ["2026-05-11", "2026-05-12", "2026-05-13"]
    rows = [order(n, at=f"'{day} 08:00:00+00'") for n, day in enumerate(days)]
    two.have(ORDERS, rows, rows[:2], measures="amount")
    found = [(day.old, day.new) for day, _ in two.compared(*days)]
    assert two.marks(*days) == found
    assert [two.marks(day)[0] for day in days] == found


def test_columns_that_only_one_side_has_are_named_all_at_once(two: Two) -> None:
    two.have(
        f"{ORDERS}, fresh text, other text", [f"{order(1)[:-1]}, 1)"], [],
        old_columns=f"{ORDERS}, legacy text",
    )  # fmt: skip
    with pytest.raises(SchemaMismatch) as refused:
        two.day()
    for name in ("'fresh' (orders_old)", "'other' (orders_old)", "'legacy' (orders_new)"):
        assert name in str(refused.value)
    ignored = two.day(ignore=("fresh", "other", "legacy"))
    assert told(ignored) == (0, 0, 1, 0)
    assert told(two.day(compare=("amount", "note"))) == (0, 0, 1, 0)


@pytest.mark.parametrize(
    ("declared", "said"),
    [
        ({"key": "order_id"}, "'order_id' (orders_old and orders_new)"),
        ({"measures": "note"}, "'note' (.* in orders_old), 'note' (.* in orders_new) are measures and no numbers"),
        ({"tolerances": {"note": {"absolute": 1}}}, "'note' (text) have a tolerance that only numbers have|'note' (text) has a tolerance that only numbers have"),
        ({"tolerances": {"amount": {"null_is_empty": True}}}, "only texts"),
        ({"tolerances": {"amount": {"time": "day"}}}, "only times"),
        ({"tolerances": {"amuont": {"absolute": 1}}}, "'amuont' (orders_old and orders_new)"),
    ],
)  # fmt: skip
def test_what_cannot_be_compared_is_refused_by_one_sentence(
    two: Two, declared: dict[str, object], said: str
) -> None:
    two.have(ORDERS, [order(1)], [order(1)])
    pattern = said.replace("(", r"\(").replace(")", r"\)")
    with pytest.raises(BackfillError, match=pattern):
        two.day(**declared)


def test_columns_of_other_kinds_are_named_all_at_once(two: Two) -> None:
    two.have(
        'id bigint, "at" timestamptz, a text, b date, c timestamp', [], [],
        old_columns='id bigint, "at" timestamptz, a bigint, b timestamp, c timestamptz',
    )  # fmt: skip
    with pytest.raises(SchemaMismatch, match=r"'a' .*'b' .*'c' .* hold other kinds of values"):
        two.day()


def test_a_side_that_is_not_there_is_named(two: Two) -> None:
    two.have(ORDERS, [order(1)], [order(1)])
    two.new.execute("DROP TABLE orders_new")
    with pytest.raises(MissingTable, match="there is no orders_new"):
        two.day()


def test_a_column_of_a_type_that_cannot_be_compared_is_refused_unless_it_is_ignored(
    two: Two,
) -> None:
    two.have(f"{ORDERS}, extra integer[]", [], [])
    two.old.execute(f"INSERT INTO orders_old VALUES {order(1)[:-1]}, NULL)")
    two.new.execute(f"INSERT INTO orders_new VALUES {order(1)[:-1]}, NULL)")
    if two.files is not None:
        two.old.execute(f"COPY orders_old TO '{two.files}' (FORMAT parquet)")
    if two.old.is_postgres != two.new.is_postgres:
        with pytest.raises(SchemaMismatch, match="'extra' .* two engines do not spell alike"):
            two.day()
    else:
        assert two.day().verdict == "equal"
    assert two.day(ignore="extra").verdict == "equal"


def test_whoever_takes_a_day_may_open_the_warehouse_to_store_it(two: Two) -> None:
    two.have(ORDERS, [order(1)], [order(2)])
    engine = two.new.engine(lock_wait=2)
    days = comparing.compare(two.migration(), two.slices("2026-05-11", DAY), engine, run_id="r", who="t")  # fmt: skip
    for _ in days:
        with engine.session(who="the store") as session:
            session.execute("CREATE TABLE IF NOT EXISTS stored (n int)")


def test_nothing_is_left_behind(two: Two) -> None:
    two.have(ORDERS, [order(1)], [order(2)])
    two.day()
    assert two.new.leftovers() == []


def test_a_writer_between_two_statements_makes_the_day_be_read_again(
    postgres: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    two = Two(postgres, postgres)
    two.have(ORDERS, [order(1)], [order(1, "2.00")])
    really, asked = comparing.difference, list[int]()

    def beside_a_writer(*args: object) -> object:
        asked.append(1)
        if len(asked) <= writes:
            two.new.execute(f"INSERT INTO orders_new VALUES {order(len(asked) + 10)}")
        return really(*args)  # type: ignore[arg-type]

    monkeypatch.setattr(comparing, "difference", beside_a_writer)
    writes = 1
    assert told(two.day()) == (0, 1, 0, 1)
    assert len(asked) == 2
    asked.clear()
    writes = 9
    with pytest.raises(SliceBusy, match="its rows changed each of the 3 times that they were read"):
        two.day()


def test_text_that_is_equal_by_collation_only_differs(duckdb: Warehouse) -> None:
    two = Two(duckdb, duckdb)
    columns = 'id text COLLATE nocase, "at" timestamptz, note text COLLATE nocase'
    two.have(columns, [f"('a', {NOON}, 'x')", f"('b', {NOON}, 'y')"], [f"('A', {NOON}, 'x')", f"('b', {NOON}, 'Y')"])  # fmt: skip
    assert told(two.day()) == (0, 1, 1, 1)


def test_a_day_of_two_warehouses_is_compared_in_parts_and_only_those_that_differ_are_moved(
    two: Two, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(apart, "_PART", 3)
    monkeypatch.setattr(apart, "_AT_ONCE", 7)
    moved: list[int] = []
    really = apart._named

    def counted(rows: pa.Table) -> pa.Table:
        moved.append(rows.num_rows)
        return really(rows)

    monkeypatch.setattr(apart, "_named", counted)
    keys = ["NULL", *map(str, range(300))]
    changed = {5: order(5, "9"), 6: order("NULL", "8"), 7: order(7, note="'é'")}
    rows = [order(key) for key in keys]
    two.have(ORDERS, rows, [changed.get(n, row) for n, row in enumerate(rows)])
    day = two.day()
    # 4 and 6 are gone, 5 has another amount, and there is a second 7 and a second row without a key
    assert told(day) == (298, 1, 2, 2)
    assert sum(moved) < 100
    moved.clear()
    two.have(ORDERS, rows, [order(key, "7") for key in keys])
    assert told(two.day()) == (0, 301, 0, 0)
    assert max(moved, default=0) < 30


def test_files_that_are_not_there_are_named(duckdb: Warehouse, tmp_path: Path) -> None:
    two = Two(duckdb, duckdb).have(ORDERS, [], [order(1)])
    old = FileSide(two.migration().old.table, files=tmp_path / "nothing" / "*.parquet")
    with pytest.raises(MissingTable, match=r"there is no orders_old \(no files match .*nothing"):
        two.day(old=old)


def test_files_in_folders_by_day_are_one_side(duckdb: Warehouse, tmp_path: Path) -> None:
    two = Two(duckdb, duckdb).have(
        "id bigint, day date, note text",
        [f"({n}, '{day}', 'x')" for n, day in enumerate(("2026-05-12", "2026-05-12", "2026-05-13"))],
        [f"({n}, '{day}', 'x')" for n, day in enumerate(("2026-05-12", "2026-05-12", "2026-05-13"))],
        cuts=(SliceColumn("day", "date"), SliceColumn("day", "date")),
    )  # fmt: skip
    duckdb.execute(f"COPY orders_old TO '{tmp_path}/lake' (FORMAT parquet, PARTITION_BY (day))")
    old = FileSide(two.migration().old.table, files=f"{tmp_path}/lake/**/*.parquet")
    found = two.compared("2026-05-12", "2026-05-13", old=old)
    assert [told(day) for day, _ in found] == [(2, 0, 0, 0), (1, 0, 0, 0)]


def test_two_addresses_of_one_warehouse_are_one(two: Two) -> None:
    two.have(ORDERS, [order(1)], [order(2)])
    old = two.migration().old
    if two.files is None:
        old = Side(old.table, with_options(two.old.url, lock_wait=2))
    assert told(two.day(old=old)) == (0, 0, 1, 1)


def test_a_key_of_any_type_finds_its_part_of_the_day(
    two: Two, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(apart, "_PART", 1)
    kinds = ("double precision", "numeric(10,2)", "text", "date", "timestamp", "boolean")
    columns = ", ".join(f"k{n} {kind}" for n, kind in enumerate(kinds))
    rows = [
        f"({n}.5, {n}.10, 'k{n}', '2026-05-{10 + n}', '2026-05-12 00:00:00.{n}', true, {NOON}, {{}})"
        for n in range(9)
    ]
    two.have(
        f'{columns}, "at" timestamptz, amount bigint',
        [row.format(1) for row in rows],
        [row.format(2 if n == 4 else 1) for n, row in enumerate(rows)],
        key=tuple(f"k{n}" for n in range(len(kinds))),
    )
    day, keys = two.compared(DAY)[0]
    assert told(day) == (8, 1, 0, 0)
    assert list(keys[0].key.values()) == [
        "4.5",
        "4.1",
        "k4",
        "2026-05-14",
        "2026-05-12 00:00:00.4",
        "true",
    ]
