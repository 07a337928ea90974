"""A table is refused when it is declared if its slices could not be compared safely."""

from __future__ import annotations

from datetime import date, datetime, timedelta, timezone
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backfill_assets.errors import DeclarationError
from backfill_assets.slice import Slice
from backfill_assets.table import KINDS, SliceColumn, Table
from backfill_assets.window import Window

ZONES = (
    "UTC",
    "America/New_York",
    "Asia/Kolkata",
    "Australia/Lord_Howe",
    "America/Havana",
    "Africa/Casablanca",
)


def held_as(column: SliceColumn, instant: datetime) -> Any:
    """Return `instant` the way a writer would put it into the column."""
    local = instant.astimezone(ZoneInfo(column.zone))
    return {
        "timestamptz": instant,
        "timestamp": local.replace(tzinfo=None, fold=0),
        "date": local.date(),
        "int_yyyymmdd": int(f"{local:%Y%m%d}"),
        "iso_text": local.replace(tzinfo=None).isoformat(),
    }[column.kind]


@given(
    instant=st.datetimes(
        datetime(2015, 1, 1), datetime(2030, 1, 1), timezones=st.just(timezone.utc)
    ),
    zone=st.sampled_from(ZONES),
    kind=st.sampled_from(KINDS),
)
def test_an_instant_lies_in_its_own_day_and_in_no_neighbour_however_the_column_holds_time(
    instant: datetime, zone: str, kind: str
) -> None:
    column = SliceColumn("t", kind, zone)  # type: ignore[arg-type]
    day = instant.astimezone(ZoneInfo(zone)).date()
    value = held_as(column, instant)
    inside = []
    for offset in (-1, 0, 1):
        start, end = column.bounds(Window.day(day + timedelta(days=offset), zone))
        if start <= value < end:
            inside.append(offset)
    assert inside == [0]


@pytest.mark.parametrize("kind", ["date", "int_yyyymmdd", "iso_text"])
def test_hours_are_refused_on_a_column_of_days(kind: str) -> None:
    hour = Window(
        datetime(2026, 5, 12, 8, tzinfo=timezone.utc), datetime(2026, 5, 12, 9, tzinfo=timezone.utc)
    )
    with pytest.raises(DeclarationError, match="whole days"):
        Slice(Table("t", SliceColumn("d", kind)), hour)  # type: ignore[arg-type]


def test_days_of_another_zone_are_refused_on_a_column_of_days() -> None:
    with pytest.raises(DeclarationError, match="whole days of UTC"):
        Slice(Table("t", SliceColumn("d", "date", "UTC")), Window.day("2026-05-12", "Asia/Tokyo"))


def test_the_repeated_hour_is_refused_on_a_clock_without_zone_and_its_whole_day_is_not() -> None:
    zone = ZoneInfo("America/New_York")
    naive = SliceColumn("t", "timestamp", "America/New_York")
    first = Window(
        datetime(2024, 11, 3, 1, tzinfo=zone), datetime(2024, 11, 3, 1, tzinfo=zone, fold=1)
    )
    second = Window(
        datetime(2024, 11, 3, 1, tzinfo=zone, fold=1), datetime(2024, 11, 3, 2, tzinfo=zone)
    )
    for hour in (first, second):
        with pytest.raises(DeclarationError, match="shows that hour twice"):
            naive.bounds(hour)
        assert SliceColumn("t", "timestamptz").bounds(hour) == (hour.start, hour.end)
    before = Window(datetime(2024, 11, 3, 0, tzinfo=zone), datetime(2024, 11, 3, 1, tzinfo=zone))
    assert naive.bounds(before) == (datetime(2024, 11, 3, 0), datetime(2024, 11, 3, 1))
    day = naive.bounds(Window.day("2024-11-03", "America/New_York"))
    assert day == (datetime(2024, 11, 3), datetime(2024, 11, 4))


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("fct", (None, None, "fct")),
        ("analytics.fct", (None, "analytics", "fct")),
        ("wh.analytics.fct", ("wh", "analytics", "fct")),
    ],
)
def test_a_dotted_name_is_schema_and_table(name: str, parts: tuple[str | None, ...]) -> None:
    table = Table(name)
    assert (table.database, table.schema, table.name) == parts
    assert table.qualified == name


def test_a_name_with_dots_of_its_own_is_kept_when_the_schema_is_given_apart() -> None:
    assert Table("fct.v2", schema="analytics").name == "fct.v2"


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"name": "a.b.c.d"}, "too many dots"),
        ({"name": ""}, "empty part"),
        ({"name": "analytics."}, "empty part"),
        ({"name": "t", "on_schema_change": "add_columns"}, "no policy 'add_columns'"),
        ({"name": "t", "max_shrink": 1.5}, "cannot shrink by 1.5"),
        ({"name": "t", "unique_key": ("id", "id")}, "named twice"),
        ({"name": "t", "unique_key": ("id",), "columns": {"day": "DATE"}}, "without 'id'"),
        (
            {"name": "t", "slice_column": SliceColumn("d", "date"), "columns": {"id": "INT"}},
            "without 'd'",
        ),
        ({"name": "t", "allow_empty": ["25 May"]}, "not a day"),
        ({"name": "t", "allow_empty": "2026-05-25"}, "not a day"),
        ({"name": "t", "allow_empty": 5}, "has allow_empty=5"),
        ({"name": "t", "source_days": "30"}, "has source_days='30'"),
        ({"name": "t", "source_days": True}, "has source_days=True"),
        ({"name": "t", "source_days": 1.5}, "has source_days=1.5"),
        ({"name": "t", "source_mutable": "False"}, "has source_mutable='False'"),
        ({"name": "t", "max_shrink": "0.5"}, "has max_shrink='0.5'"),
        ({"name": "t", "max_shrink": float("nan")}, "cannot shrink by nan"),
        ({"name": "t", "shrink_floor": "x"}, "has shrink_floor='x'"),
        ({"name": "t", "unique_key": 5}, "has unique_key=5"),
        ({"name": "t", "unique_key": [5]}, "not all of it is text"),
        ({"name": "t", "columns": ["id"]}, "has columns=['id']"),
        ({"name": "t", "expects": 5}, "has expects=5"),
        ({"name": "t", "closed": 5}, "has closed=5"),
        ({"name": "t", "schema": 5}, "has schema=5"),
    ],
)
def test_what_cannot_be_right_is_refused_in_a_sentence(wrong: dict[str, Any], said: str) -> None:
    with pytest.raises(DeclarationError) as refused:
        Table(**wrong)
    assert said in str(refused.value)
    assert refused.value.do


@pytest.mark.parametrize("kind", ["time", "varchar", "DATE", ""])
def test_a_kind_that_cannot_be_compared_is_refused(kind: str) -> None:
    with pytest.raises(DeclarationError, match="cannot be compared safely"):
        SliceColumn("d", kind)  # type: ignore[arg-type]


def test_an_empty_day_is_right_only_where_it_is_declared() -> None:
    table = Table("t", SliceColumn("d", "date"), allow_empty=frozenset({date(2026, 5, 25)}))
    assert table.empty_is_right(Window.day("2026-05-25"))
    assert not table.empty_is_right(Window.day("2026-05-26"))
    both = Window(Window.day("2026-05-25").start, Window.day("2026-05-26").end)
    assert not table.empty_is_right(both)
    assert not table.empty_is_right(None)
    assert Table("t", allow_empty=True).empty_is_right(None)


def test_a_table_without_a_slice_column_cannot_be_written_by_window() -> None:
    with pytest.raises(DeclarationError, match="declares no slice column"):
        Slice(Table("t"), Window.day("2026-05-12"))


def test_a_slice_gives_a_value_for_every_dimension_and_for_nothing_else() -> None:
    table = Table("t", SliceColumn("d", "date"), dimensions=("region",))
    day = Window.day("2026-05-12")
    assert Slice(table, day, (("region", "emea"),)).label == "t 2026-05-12|emea"
    for fixed in ((), (("country", "de"),), (("region", "emea"), ("country", "de"))):
        with pytest.raises(DeclarationError, match="dimensions"):
            Slice(table, day, fixed)


def test_a_slice_is_named_as_dagster_names_it() -> None:
    table = Table("analytics.fct", SliceColumn("d", "date"))
    assert (
        Slice(table, Window.day("2026-05-12"), partition="2026-05-12").label
        == "analytics.fct 2026-05-12"
    )
    assert Slice(table).label == "analytics.fct (whole table)"


def test_a_source_that_is_kept_for_a_million_days_is_kept_for_ever() -> None:
    days = Table("t", source_days=1_000_000).source_days
    assert days is not None
    assert datetime.now(timezone.utc) - timedelta(days=days) < datetime(
        200, 1, 1, tzinfo=timezone.utc
    )
