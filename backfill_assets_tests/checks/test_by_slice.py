"""Rows counted for all slices at once are the rows that each slice's own predicate finds."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta, timezone

import dagster as dg
import pyarrow as pa
import pytest

from backfill_assets.checks.by_slice import Buckets, measured
from backfill_assets.engines.sql import predicate, qualified
from backfill_assets.slice import Slice
from backfill_assets.table import SliceColumn, Table
from backfill_assets.window import Window, zone_named
from backfill_assets_tests.warehouses import Warehouse

UTC = timezone.utc


def instants(first: datetime, hours: int, minutes: int = 7) -> list[datetime]:
    """Rows at odd minutes, and on each edge of the quarter hours around them."""
    return [
        first + timedelta(hours=n, minutes=m) for n in range(hours) for m in (0, minutes, 15, 59)
    ]


def windows(kind: str, zone: str, start: str, count: int) -> list[Window]:
    definition = {
        "daily": dg.DailyPartitionsDefinition,
        "hourly": dg.HourlyPartitionsDefinition,
        "weekly": dg.WeeklyPartitionsDefinition,
    }[kind]
    fmt = start + ("-00:00" if kind == "hourly" else "")
    cut = definition(fmt, timezone=zone)
    keys = cut.get_partition_keys()[:count]
    return [Window.of(cut.time_window_for_partition_key(key)) for key in keys]


@pytest.mark.parametrize(
    ("column", "partitions", "start"),
    [
        (("timestamptz", "UTC"), ("daily", "UTC"), "2026-03-01"),
        (("timestamptz", "America/New_York"), ("daily", "America/New_York"), "2026-03-06"),
        (("timestamptz", "UTC"), ("daily", "Asia/Kolkata"), "2026-03-06"),
        (("timestamptz", "UTC"), ("hourly", "UTC"), "2026-03-08"),
        (("timestamptz", "America/New_York"), ("hourly", "America/New_York"), "2025-11-02"),
        (("timestamptz", "UTC"), ("hourly", "Asia/Kathmandu"), "2026-03-06"),
        (("timestamp", "Europe/Berlin"), ("daily", "Europe/Berlin"), "2026-03-27"),
        (("timestamp", "UTC"), ("hourly", "UTC"), "2026-03-08"),
        (("date", "UTC"), ("daily", "UTC"), "2026-03-01"),
        (("date", "UTC"), ("weekly", "UTC"), "2026-03-01"),
        (("int_yyyymmdd", "UTC"), ("daily", "UTC"), "2026-03-01"),
        (("iso_text", "UTC"), ("daily", "UTC"), "2026-03-01"),
    ],
)
def test_every_slice_gets_the_rows_that_its_predicate_finds(
    warehouse: Warehouse, column: tuple[str, str], partitions: tuple[str, str], start: str
) -> None:
    kind, zone = column
    table = Table("t", SliceColumn("at", kind, zone))  # type: ignore[arg-type]
    cut = windows(*partitions, start, 5 if partitions[0] != "hourly" else 30)
    begin = cut[0].start - timedelta(hours=3)
    moments = instants(begin, int((cut[-1].end - begin).total_seconds() // 3600) + 3)
    local = [moment.astimezone(zone_named(zone)) for moment in moments]
    values = {
        "timestamptz": lambda: pa.array(moments, pa.timestamp("us", "UTC")),
        "timestamp": lambda: pa.array([m.replace(tzinfo=None) for m in local], pa.timestamp("us")),
        "date": lambda: pa.array([m.date() for m in local]),
        "int_yyyymmdd": lambda: pa.array([int(f"{m:%Y%m%d}") for m in local], pa.int64()),
        "iso_text": lambda: pa.array([m.isoformat() for m in local]),
    }[kind]()
    warehouse.write(Table("t"), None, pa.table({"at": values}))
    slices = [Slice(table, window) for window in cut]
    with warehouse.session() as session:
        relation = qualified(session.spelling, table)
        without_zones = replace(session.spelling, day_of_instant=None)
        found, again = (
            measured(session, Buckets.of(slices, spelling), relation, {"n": "count(*)"})
            for spelling in (session.spelling, without_zones)
        )
        expected = [
            session.fetch(
                f"SELECT count(*) FROM {relation} WHERE {predicate(session.spelling, s)}"
            )[0][0]
            for s in slices
        ]
    assert [int(one["n"]) for one in found] == expected
    assert again == found
    assert sum(expected) > 0


def test_regions_are_told_apart_and_sums_are_sums(warehouse: Warehouse) -> None:
    table = Table("t", SliceColumn("at", "date"), dimensions=("region",))
    day = datetime(2026, 5, 12, tzinfo=UTC).date()
    rows = {"at": [day, day, day], "region": ["eu", "us", "us"], "amount": [1, 10, 100]}
    warehouse.write(Table("t"), None, rows)
    slices = [
        Slice(table, Window.day("2026-05-12"), (("region", r),)) for r in ("eu", "us", "asia")
    ]
    with warehouse.session() as session:
        measures = {"n": "count(*)", "amount": "sum(amount)"}
        found = measured(session, Buckets.of(slices), qualified(session.spelling, table), measures)
    assert [(one["n"], one["amount"]) for one in found] == [(1, 1), (2, 110), (0, 0)]


def test_a_table_without_a_slice_column_is_one_slice(warehouse: Warehouse) -> None:
    warehouse.write(Table("t"), None, {"id": [1, 2, 3]})
    with warehouse.session() as session:
        found = measured(session, Buckets.of([Slice(Table("t"))]), "t", {"n": "count(*)"})
    assert found == [{"n": 3}]
