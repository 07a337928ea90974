"""A window is half-open, aware and UTC inside, on days of 23, 24 and 25 hours and in the hour that comes twice."""

from __future__ import annotations

from datetime import date, datetime, timedelta, timezone
from zoneinfo import ZoneInfo

import dagster as dg
import pytest

from backfill_assets.errors import DeclarationError
from backfill_assets.window import Window, midnight

UTC = timezone.utc
# Havana's midnight happens twice in autumn, São Paulo's was skipped in 2018, Lord Howe moves by half an hour
ZONES = (
    "UTC",
    "America/New_York",
    "Asia/Kolkata",
    "Asia/Taipei",
    "Asia/Tokyo",
    "Australia/Brisbane",
    "Australia/Lord_Howe",
    "America/Havana",
    "America/Sao_Paulo",
    "Africa/Casablanca",
)
PARTITIONS = {
    "hourly": lambda zone: dg.HourlyPartitionsDefinition(
        "2018-01-01-00:00", end_date="2019-01-01-00:00", timezone=zone
    ),
    "daily": lambda zone: dg.DailyPartitionsDefinition(
        "2018-01-01", end_date="2019-01-01", timezone=zone
    ),
    "weekly": lambda zone: dg.WeeklyPartitionsDefinition(
        "2018-01-07", end_date="2019-01-06", timezone=zone
    ),
    "monthly": lambda zone: dg.MonthlyPartitionsDefinition(
        "2018-01-01", end_date="2019-01-01", timezone=zone
    ),
}


def at(text: str, zone: str = "UTC", fold: int = 0) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=ZoneInfo(zone), fold=fold)


@pytest.mark.parametrize("zone", ZONES)
@pytest.mark.parametrize("kind", [kind for kind in PARTITIONS if kind != "hourly"])
def test_a_years_partitions_tile_it_without_gap_or_overlap(kind: str, zone: str) -> None:
    definition = PARTITIONS[kind](zone)
    windows = [
        Window.of(definition.time_window_for_partition_key(key))
        for key in definition.get_partition_keys()
    ]
    assert len(windows) >= 12
    for earlier, later in zip(windows, windows[1:], strict=False):
        assert earlier.end == later.start
        assert not earlier.overlaps(later)


@pytest.mark.parametrize("zone", ["UTC", "America/New_York", "Asia/Kolkata", "Australia/Brisbane"])
def test_a_years_hours_tile_it_even_where_one_comes_twice_or_never(zone: str) -> None:
    definition = PARTITIONS["hourly"](zone)
    windows = [
        Window.of(definition.time_window_for_partition_key(key))
        for key in definition.get_partition_keys()
    ]
    assert len(windows) == 8760
    for earlier, later in zip(windows, windows[1:], strict=False):
        assert earlier.end == later.start
        assert earlier.end - earlier.start == timedelta(hours=1)


@pytest.mark.parametrize(
    ("day", "hours"),
    [("2024-03-09", 24), ("2024-03-10", 23), ("2024-11-03", 25), ("2024-11-04", 24)],
)
def test_a_new_york_day_is_as_long_as_it_is(day: str, hours: int) -> None:
    window = Window.day(day, "America/New_York")
    assert window.end - window.start == timedelta(hours=hours)
    assert window == Window.of(
        dg.DailyPartitionsDefinition(
            "2024-01-01", timezone="America/New_York"
        ).time_window_for_partition_key(day)
    )


def test_the_hour_that_comes_twice_is_two_windows() -> None:
    zone = "America/New_York"
    first = Window(at("2024-11-03 01:00", zone), at("2024-11-03 01:00", zone, fold=1))
    second = Window(at("2024-11-03 01:00", zone, fold=1), at("2024-11-03 02:00", zone))
    assert first.end == second.start
    assert first.end - first.start == second.end - second.start == timedelta(hours=1)
    assert not first.overlaps(second)


def test_a_row_at_the_start_belongs_and_a_row_at_the_end_does_not() -> None:
    window = Window.day("2026-05-10")
    assert window.contains(at("2026-05-10 00:00:00"))
    assert window.contains(at("2026-05-10 23:59:59.999999"))
    assert not window.contains(at("2026-05-11 00:00:00"))
    assert not window.contains(at("2026-05-09 23:59:59.999999"))


@pytest.mark.parametrize(
    ("start", "end"),
    [
        (at("2026-05-10 00:00"), at("2026-05-10 00:00")),
        (at("2026-05-11 00:00"), at("2026-05-10 00:00")),
        (
            at("2024-11-03 01:30", "America/New_York", fold=1),
            at("2024-11-03 01:45", "America/New_York", fold=0),
        ),
    ],
    ids=["of_no_length", "turned_round", "turned_round_in_the_repeated_hour"],
)
def test_a_window_that_holds_no_time_is_refused(start: datetime, end: datetime) -> None:
    with pytest.raises(DeclarationError, match="its start is not before its end"):
        Window(start, end)


def test_a_time_without_a_zone_is_refused() -> None:
    with pytest.raises(DeclarationError, match="no time zone"):
        Window(datetime(2026, 5, 10), at("2026-05-11 00:00"))


def test_whatever_zone_comes_in_utc_is_kept() -> None:
    window = Window(at("2026-05-10 00:00", "Asia/Tokyo"), at("2026-05-11 00:00", "Asia/Tokyo"))
    assert window == Window(at("2026-05-09 15:00"), at("2026-05-10 15:00"))
    assert window.start.tzinfo is UTC


def test_the_days_of_a_window_are_those_it_touches() -> None:
    tokyo = Window.day("2026-05-10", "Asia/Tokyo")
    assert tokyo.days("Asia/Tokyo") == (date(2026, 5, 10),)
    assert tokyo.days("UTC") == (date(2026, 5, 9), date(2026, 5, 10))
    assert Window(at("2026-05-01 00:00"), at("2026-06-01 00:00")).days()[-1] == date(2026, 5, 31)


@pytest.mark.parametrize(
    ("window", "zone", "label"),
    [
        (Window.day("2026-05-12"), "UTC", "2026-05-12"),
        (Window(at("2026-05-12 00:00"), at("2026-05-15 00:00")), "UTC", "2026-05-12...2026-05-14"),
        (Window.day("2024-03-10", "America/New_York"), "America/New_York", "2024-03-10"),
        (
            Window(at("2026-05-12 08:00"), at("2026-05-12 09:00")),
            "UTC",
            "2026-05-12T08:00:00+00:00/2026-05-12T09:00:00+00:00",
        ),
    ],
)
def test_a_window_is_said_in_days_first_and_last_included_and_in_instants_where_days_do_not_fit(
    window: Window, zone: str, label: str
) -> None:
    assert window.label(zone) == label


def test_a_day_whose_midnight_is_skipped_begins_when_the_clock_goes_on() -> None:
    assert midnight(date(2018, 11, 4), "America/Sao_Paulo") == at("2018-11-04 03:00")
    assert Window.day("2018-11-04", "America/Sao_Paulo").is_whole_days("America/Sao_Paulo")


@pytest.mark.parametrize("zone", ["Mars/Olympus", "", "../etc/passwd", "EST5EDT4"])
def test_a_zone_that_nobody_knows_is_refused(zone: str) -> None:
    with pytest.raises(DeclarationError, match="time zone"):
        Window.day("2026-05-12", zone)
