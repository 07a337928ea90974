"""Late rows are counted for all slices in one statement, each slice with an instant of its own."""

from datetime import datetime, timedelta, timezone

import pytest

from backfill_assets.expectations import Source
from backfill_assets.operations.source_rows import late_rows, rows_of_source
from backfill_assets.slice import Slice
from backfill_assets.table import SliceColumn, Table
from backfill_assets.window import Window
from backfill_assets_tests.warehouses import Warehouse, at

READ = [at("2026-05-03 00:00"), at("2026-05-04 00:00"), None]


def came(*values: tuple[str, str]) -> str:
    """Return rows of a source: what `on` holds, and when the row came."""
    return ", ".join(f"({on}, TIMESTAMPTZ '{when}+00')" for on, when in values)


@pytest.mark.parametrize(
    ("kind", "type_", "first", "second", "third"),
    [
        ("date", "DATE", "DATE '2026-05-01'", "DATE '2026-05-02'", "DATE '2026-05-03'"),
        ("int_yyyymmdd", "BIGINT", "20260501", "20260502", "20260503"),
        ("iso_text", "VARCHAR(30)", "'2026-05-01T10:00'", "'2026-05-02'", "'2026-05-03 x'"),
        (
            "timestamp",
            "TIMESTAMP",
            "TIMESTAMP '2026-05-01 23:59:59'",
            "TIMESTAMP '2026-05-02 00:00:00'",
            "TIMESTAMP '2026-05-03 12:00:00'",
        ),
        (
            "timestamptz",
            "TIMESTAMPTZ",
            "TIMESTAMPTZ '2026-05-02 03:59:59+00'",
            "TIMESTAMPTZ '2026-05-02 04:00:00+00'",
            "TIMESTAMPTZ '2026-05-03 12:00:00+00'",
        ),
    ],
)
def test_a_row_is_late_when_it_came_at_or_after_the_last_read_of_its_own_day(
    warehouse: Warehouse, kind: str, type_: str, first: str, second: str, third: str
) -> None:
    warehouse.execute(
        f"CREATE TABLE events (happened {type_}, came TIMESTAMPTZ)",
        "INSERT INTO events VALUES "
        + came(
            (first, "2026-05-02 23:59:59"),
            (first, "2026-05-03 00:00:00"),  # the moment of the read itself
            (second, "2026-05-03 12:00:00"),  # late for the first day only
            (second, "2026-05-04 00:00:01"),
            (second, "2026-06-01 00:00:00"),
            (third, "2026-06-01 00:00:00"),
        ),
    )
    zone = "America/New_York"
    table = Table("t", SliceColumn("day", "date", zone))
    slices = [Slice(table, Window.day(f"2026-05-0{day}", zone)) for day in (1, 2, 3)]
    source = Source("events", "happened", kind, zone, ingested_at="came")
    with warehouse.session(read_only=True) as session:
        assert rows_of_source(session, table, slices, source) == [2, 3, 1]
        assert late_rows(session, table, slices, source, READ) == [1, 2, None]


def test_hours_and_regions_are_told_apart(warehouse: Warehouse) -> None:
    warehouse.execute(
        "CREATE TABLE events (happened TIMESTAMPTZ, region VARCHAR(9), came TIMESTAMPTZ)",
        "INSERT INTO events VALUES"
        " ('2026-05-01 00:59:59+00', 'eu', '2026-05-02 00:00:00+00'),"
        " ('2026-05-01 01:00:00+00', 'eu', '2026-05-02 00:00:00+00'),"
        " ('2026-05-01 00:10:00+00', 'o''x', '2026-05-02 00:00:00+00')",
    )
    table = Table("t", SliceColumn("at"), dimensions=("region",))
    start = datetime(2026, 5, 1, tzinfo=timezone.utc)
    slices = [
        Slice(
            table,
            Window(start + timedelta(hours=hour), start + timedelta(hours=hour + 1)),
            (("region", region),),
        )
        for hour in (0, 1)
        for region in ("eu", "o'x")
    ]
    source = Source("events", "happened", ingested_at="came")
    since = [at("2026-05-02 00:00"), at("2026-05-01 12:00"), at("2026-05-03 00:00"), None]
    with warehouse.session(read_only=True) as session:
        assert late_rows(session, table, slices, source, since) == [1, 1, 0, None]
