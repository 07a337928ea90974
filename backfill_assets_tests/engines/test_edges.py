"""Where a slice begins and ends: in every kind of slice column, in every zone, on days of 23 and 25 hours."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pyarrow as pa
import pytest

from backfill_assets.engines.postgres import SPELLING
from backfill_assets.engines.sql import predicate
from backfill_assets.errors import BadRows, DeclarationError, SchemaMismatch
from backfill_assets.slice import Slice
from backfill_assets.table import SliceColumn, SliceKind, Table
from backfill_assets.window import UTC, Window
from backfill_assets_tests.warehouses import Warehouse, at

NEW_YORK = "America/New_York"
MICROSECOND = timedelta(microseconds=1)


@dataclass(frozen=True)
class Kind:
    """How one kind of column writes 12 May 2026 and its edges; `rows` are (value, in the day of 12 May?)."""

    kind: SliceKind
    sql: str
    arrow: Any
    rows: Mapping[str, tuple[Any, bool]]


def clock(text: str) -> datetime:
    return datetime.fromisoformat(text)


DATES = Kind(
    "date",
    "DATE",
    pa.date32(),
    {
        "the_day_before": (date(2026, 5, 11), False),
        "the_day": (date(2026, 5, 12), True),
        "the_day_after": (date(2026, 5, 13), False),
    },
)
CLOCKS = Kind(
    "timestamp",
    "TIMESTAMP",
    pa.timestamp("us"),
    {
        "a_microsecond_early": (clock("2026-05-11 23:59:59.999999"), False),
        "at_the_start": (clock("2026-05-12 00:00:00"), True),
        "a_microsecond_before_the_end": (clock("2026-05-12 23:59:59.999999"), True),
        "at_the_end": (clock("2026-05-13 00:00:00"), False),
    },
)
INSTANTS = Kind(
    "timestamptz",
    "TIMESTAMP WITH TIME ZONE",
    pa.timestamp("us", tz="UTC"),
    {name: (value.replace(tzinfo=UTC), inside) for name, (value, inside) in CLOCKS.rows.items()},
)
NUMBERS = Kind(
    "int_yyyymmdd",
    "INTEGER",
    pa.int64(),
    {
        "the_day_before": (20260511, False),
        "the_day": (20260512, True),
        "the_day_after": (20260513, False),
    },
)
TEXTS = Kind(
    "iso_text",
    "VARCHAR(40)",
    pa.string(),
    {
        "late_the_day_before": ("2026-05-11T23:59:59.999999Z", False),
        "the_day": ("2026-05-12", True),
        "late_that_day": ("2026-05-12 23:59:59.999999", True),
        "the_day_after": ("2026-05-13", False),
    },
)
KINDS = [DATES, CLOCKS, INSTANTS, NUMBERS, TEXTS]


def table_of(kind: Kind, zone: str = "UTC") -> Table:
    return Table("t", SliceColumn("at", kind.kind, zone), allow_empty=True)


def rows_of(kind: Kind, names: list[str]) -> pa.Table:
    return pa.table({"at": pa.array([kind.rows[n][0] for n in names], kind.arrow), "why": names})


@pytest.mark.parametrize("kind", KINDS, ids=lambda k: k.kind)
def test_rewriting_a_day_takes_what_is_in_it_and_leaves_what_touches_it(
    warehouse: Warehouse, kind: Kind
) -> None:
    warehouse.execute(f"CREATE TABLE t ({warehouse.quoted('at')} {kind.sql}, why VARCHAR(100))")
    with warehouse.session() as session:
        stage = session.stage_arrow("there_before", rows_of(kind, list(kind.rows)))
        at_ = warehouse.quoted("at")
        copy = warehouse.spoken(f"INSERT INTO t ({at_}, why) SELECT {at_}, why FROM staged")
        session.execute(copy.replace("staged", stage))
    inside = [name for name, (_, is_inside) in kind.rows.items() if is_inside]
    load = warehouse.write(table_of(kind), "2026-05-12", rows_of(kind, inside))
    assert load.rows_before == len(inside)
    assert sorted(warehouse.rows("SELECT why FROM t")) == sorted((name,) for name in kind.rows)
    assert (
        warehouse.write(table_of(kind), "2026-05-12", rows_of(kind, inside)).checksum
        == load.checksum
    )


@pytest.mark.parametrize(
    ("kind", "name"),
    [(k, n) for k in KINDS for n, (_, inside) in k.rows.items() if not inside],
    ids=str,
)
def test_a_row_outside_the_day_is_refused_and_counted(
    warehouse: Warehouse, kind: Kind, name: str
) -> None:
    inside = [n for n, (_, is_inside) in kind.rows.items() if is_inside]
    warehouse.write(table_of(kind), "2026-05-12", rows_of(kind, inside))
    with pytest.raises(
        BadRows, match=f"1 of {len(inside) + 1} rows do not belong to it; .* runs from .* to "
    ):
        warehouse.write(table_of(kind), "2026-05-12", rows_of(kind, [*inside, name]))
    assert warehouse.count("t") == len(inside)


@pytest.mark.parametrize("kind", KINDS, ids=lambda k: k.kind)
def test_a_row_without_a_slice_value_is_refused_and_counted(
    warehouse: Warehouse, kind: Kind
) -> None:
    inside = next(value for value, is_inside in kind.rows.values() if is_inside)
    rows = pa.table({"at": pa.array([inside, None, None], kind.arrow)})
    with pytest.raises(BadRows, match="2 of 3 rows do not belong to it, 2 of them without a value"):
        warehouse.write(table_of(kind), "2026-05-12", rows)
    assert warehouse.columns("t") is None, "nothing was made for rows that were refused"


@pytest.mark.parametrize("kind", KINDS, ids=lambda k: k.kind)
def test_rows_that_all_lack_the_slice_value_are_refused(warehouse: Warehouse, kind: Kind) -> None:
    warehouse.execute(f"CREATE TABLE t ({warehouse.quoted('at')} {kind.sql})")
    with pytest.raises(BadRows, match="2 of 2 rows do not belong to it, 2 of them without a value"):
        warehouse.write(table_of(kind), "2026-05-12", {"at": pa.array([None, None], pa.null())})


@pytest.mark.parametrize("kind", [DATES, NUMBERS, TEXTS], ids=lambda k: k.kind)
@pytest.mark.parametrize("window", [(0, 12), (6, 24), (5, 29)], ids=str)
def test_a_window_that_is_not_made_of_whole_days_is_refused_for_a_column_of_days(
    kind: Kind, window: Any
) -> None:
    start, end = (at("2026-05-12 00:00") + timedelta(hours=h) for h in window)
    warehouse = Warehouse("duckdb:///never-opened.duckdb")
    with pytest.raises(DeclarationError, match="cannot be compared with column 'at'"):
        warehouse.write(table_of(kind), Window(start, end), rows_of(kind, ["the_day"]))


def test_days_of_new_york_are_refused_for_a_column_that_holds_days_of_utc() -> None:
    warehouse = Warehouse("duckdb:///never-opened.duckdb")
    with pytest.raises(DeclarationError, match="whole days of UTC"):
        warehouse.write(
            table_of(DATES), Window.day("2026-05-12", NEW_YORK), rows_of(DATES, ["the_day"])
        )


@pytest.mark.parametrize("kind", KINDS, ids=lambda k: k.kind)
def test_two_days_and_a_month_are_slices_like_one_day(warehouse: Warehouse, kind: Kind) -> None:
    inside = [n for n, (_, is_inside) in kind.rows.items() if is_inside]
    outside = [n for n in kind.rows if n not in inside]
    two_days = Window(at("2026-05-11 00:00"), at("2026-05-13 00:00"))
    after = [n for n in kind.rows if "after" in n or ("end" in n and "before" not in n)]
    before = [n for n in outside if n not in after]
    warehouse.write(table_of(kind), two_days, rows_of(kind, [*before, *inside]))
    month = Window(at("2026-05-01 00:00"), at("2026-06-01 00:00"))
    load = warehouse.write(table_of(kind), month, rows_of(kind, list(kind.rows)))
    assert (load.rows_before, load.rows_after) == (len(before) + len(inside), len(kind.rows))
    assert load.partition_key == "2026-05-01...2026-05-31"
    with pytest.raises(BadRows):
        warehouse.write(table_of(kind), two_days, rows_of(kind, list(kind.rows)))


# the hour from 01:00 to 02:00 is there twice on 1 November 2026, and the one from 02:00 to 03:00 is not on 8 March
NEW_YORK_DAYS = {
    "spring": (date(2026, 3, 8), 23),
    "autumn": (date(2026, 11, 1), 25),
    "summer": (date(2026, 7, 4), 24),
}


@pytest.mark.parametrize("season", NEW_YORK_DAYS)
def test_every_half_hour_of_a_new_york_day_belongs_to_that_day_alone(
    warehouse: Warehouse, season: str
) -> None:
    day, hours = NEW_YORK_DAYS[season]
    table = Table("t", SliceColumn("at", "timestamptz", NEW_YORK))
    windows = [Window.day(day + timedelta(days=n), NEW_YORK) for n in (-1, 0, 1)]
    for _ in range(2):
        for window in windows:
            count = int((window.end - window.start) / timedelta(minutes=30))
            instants = [window.start + n * timedelta(minutes=30) for n in range(count)] + [
                window.end - MICROSECOND
            ]
            warehouse.write(
                table, window, {"at": pa.array(instants, pa.timestamp("us", tz=NEW_YORK))}
            )
    assert warehouse.count("t") == (24 + hours + 24) * 2 + 3
    load = warehouse.write(
        table, windows[1], {"at": pa.array([windows[1].start], pa.timestamp("us", tz="UTC"))}
    )
    assert load.rows_before == hours * 2 + 1
    assert load.partition_key == str(day)


@pytest.mark.parametrize("season", NEW_YORK_DAYS)
def test_a_wall_clock_column_of_new_york_keeps_its_days_apart(
    warehouse: Warehouse, season: str
) -> None:
    day, _ = NEW_YORK_DAYS[season]
    table = Table("t", SliceColumn("at", "timestamp", NEW_YORK))
    for _ in range(2):
        for n in (-1, 0, 1):
            midnight = datetime.combine(day + timedelta(days=n), datetime.min.time())
            clocks = [
                midnight,
                midnight + timedelta(hours=1, minutes=30),
                midnight + timedelta(days=1) - MICROSECOND,
            ]
            warehouse.write(
                table, str(day + timedelta(days=n)), {"at": pa.array(clocks, pa.timestamp("us"))}
            )
    assert warehouse.count("t") == 9


def test_the_two_hours_that_a_clock_shows_alike_are_two_slices_of_instants(
    warehouse: Warehouse,
) -> None:
    first = datetime(2026, 11, 1, 1, tzinfo=ZoneInfo(NEW_YORK)).astimezone(UTC)
    table = Table("t", SliceColumn("at", "timestamptz", NEW_YORK))
    hours = [Window(first + timedelta(hours=n), first + timedelta(hours=n + 1)) for n in range(2)]
    for window in (*hours, *hours):
        warehouse.write(
            table,
            window,
            {"at": pa.array([window.start + timedelta(minutes=30)], pa.timestamp("us", tz="UTC"))},
        )
    assert warehouse.count("t") == 2
    with pytest.raises(DeclarationError, match="shows that hour twice"):
        Table("t", SliceColumn("at", "timestamp", NEW_YORK)).slice_column.bounds(hours[0])  # type: ignore[union-attr]


def test_instants_are_the_same_whatever_zone_the_frame_tells_them_in(warehouse: Warehouse) -> None:
    table = Table("t", SliceColumn("at", "timestamptz"))
    loads = [
        warehouse.write(
            table,
            "2026-05-12",
            {"at": pa.array([at("2026-05-12 23:30")], pa.timestamp("us", tz=zone))},
        )
        for zone in ("UTC", NEW_YORK, "Asia/Kolkata", "+05:30")
    ]
    assert len({load.checksum for load in loads}) == 1
    assert warehouse.rows(f"SELECT {warehouse.quoted('at')} FROM t")[0][0].astimezone(UTC) == at(
        "2026-05-12 23:30"
    )


@pytest.mark.parametrize("kind", KINDS, ids=lambda k: k.kind)
def test_a_day_is_found_through_the_index_of_its_column(postgres: Warehouse, kind: Kind) -> None:
    hour = "TIMESTAMP '2020-01-01 00:00' + n * INTERVAL '1 hour'"
    values = {
        "date": f"CAST({hour} AS date)",
        "timestamp": hour,
        "timestamptz": f"({hour}) AT TIME ZONE 'UTC'",
        "int_yyyymmdd": f"CAST(to_char({hour}, 'YYYYMMDD') AS integer)",
        "iso_text": f"to_char({hour}, 'YYYY-MM-DD HH24:MI:SS')",
    }
    postgres.execute(
        f'CREATE TABLE t ("at" {kind.sql})',
        f"INSERT INTO t SELECT {values[kind.kind]} FROM generate_series(0, 60000) AS n",
        'CREATE INDEX ON t ("at")',
        "ANALYZE t",
    )
    condition = predicate(SPELLING, Slice(table_of(kind), Window.day("2026-05-12")))
    plan = "\n".join(line for (line,) in postgres.rows(f"EXPLAIN DELETE FROM t WHERE {condition}"))
    assert "Index Cond" in plan
    assert "Seq Scan" not in plan
    assert postgres.count("t", condition) == 24


def test_an_instant_is_not_taken_for_a_wall_clock(warehouse: Warehouse) -> None:
    warehouse.execute(f"CREATE TABLE t ({warehouse.quoted('at')} TIMESTAMP)")
    with pytest.raises(SchemaMismatch, match="have to be reinterpreted"):
        warehouse.write(
            table_of(CLOCKS),
            "2026-05-12",
            {"at": pa.array([at("2026-05-12 01:00")], pa.timestamp("us", tz="UTC"))},
        )


@pytest.mark.parametrize("kind", KINDS, ids=lambda k: k.kind)
def test_a_column_declared_as_another_kind_than_it_is_is_refused(
    warehouse: Warehouse, kind: Kind
) -> None:
    warehouse.execute(f"CREATE TABLE t ({warehouse.quoted('at')} {kind.sql})")
    inside = [n for n, (_, is_inside) in kind.rows.items() if is_inside]
    for other in KINDS:
        if other is not kind:
            with pytest.raises(SchemaMismatch, match=f"declared to hold {other.kind}"):
                warehouse.write(table_of(other), "2026-05-12", rows_of(kind, inside).select(["at"]))


@pytest.mark.but(
    "snowflake",
    "bigquery",
    why="Snowflake's times hold nanoseconds, and fakesnow's lose them unseen",
)
def test_digits_below_a_microsecond_are_refused_and_trailing_zeros_are_not(
    warehouse: Warehouse,
) -> None:
    midnight = int(at("2026-05-12 00:00").timestamp()) * 10**9
    table = Table(
        "t", SliceColumn("at", "timestamp"), columns={"at": warehouse.type_of("TIMESTAMP")}
    )
    exact = {"at": pa.array([midnight, midnight + 86_399_999_999_000], pa.timestamp("ns"))}
    assert warehouse.write(table, "2026-05-12", exact).rows_after == 2
    too_fine = {"at": pa.array([midnight + 86_399_999_999_999], pa.timestamp("ns"))}
    with pytest.raises(SchemaMismatch):
        warehouse.write(table, "2026-05-12", too_fine)
    assert warehouse.count("t") == 2
