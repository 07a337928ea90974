"""Rows that reach the source after their slice was read are found, told by number, and nothing else is."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from dagster._core.launcher.sync_in_memory_run_launcher import SyncInMemoryRunLauncher

from backfill_assets.checks.late import late_slices
from backfill_assets.errors import DeclarationError
from backfill_assets.expectations import Source
from backfill_assets.io_managers import DeleteInsertIOManager, Select
from backfill_assets.slice import Slice
from backfill_assets.table import SliceColumn, Table
from backfill_assets.window import Window
from backfill_assets.writing import AuditTable
from backfill_assets_tests.operations import late_location
from backfill_assets_tests.operations.daemon import Daemon, daemon_for
from backfill_assets_tests.warehouses import Warehouse, at

EVENTS = Source("raw.events", on="event_at", ingested_at="arrived_at")


def events(warehouse: Warehouse, *rows: tuple[str, str, str], kind: str = "TIMESTAMPTZ") -> None:
    """Put rows into the source: name, when it happened, when it arrived."""
    warehouse.execute(
        "CREATE SCHEMA IF NOT EXISTS raw",
        f"CREATE TABLE IF NOT EXISTS raw.events (name TEXT, event_at {kind}, arrived_at TIMESTAMPTZ)",
        *(f"INSERT INTO raw.events VALUES ('{n}', '{e}', '{a}')" for n, e, a in rows),
    )


def loaded(
    warehouse: Warehouse,
    table: Table,
    window: Window | str | None,
    read_at: str,
    fixed: dict[str, str] | None = None,
) -> None:
    """Load a slice as from a source read at that time."""
    zone = table.slice_column.zone if table.slice_column else "UTC"
    window = Window.day(window, zone) if isinstance(window, str) else window
    row: dict[str, Any] = {"id": [1], **{name: [value] for name, value in (fixed or {}).items()}}
    if table.slice_column is not None and window is not None:
        value = table.slice_column.bounds(window)[0]
        row[table.slice_column.name] = [value]
    warehouse.write(table, window, row, fixed=fixed, source_read_at=at(read_at))


def found(warehouse: Warehouse, table: Table, slices: list[Slice]) -> dict[str, tuple[int, str]]:
    """Return for each slice with late rows their number and when the newest came."""
    with warehouse.session(read_only=True) as session:
        late = late_slices(session, AuditTable(), table, slices)
    return {one.slice.name: (one.rows, f"{one.newest:%m-%d %H:%M}") for one in late}


def sales(kind: Any = "date", zone: str = "UTC", source: Source = EVENTS, **more: Any) -> Table:
    return Table("mart.sales", SliceColumn("day", kind, zone), source=source, **more)


def days(table: Table, first: str, number: int, fixed: tuple = ()) -> list[Slice]:
    assert table.slice_column is not None
    begin = date.fromisoformat(first)
    return [
        Slice(table, Window.day(begin + timedelta(days=n), table.slice_column.zone), fixed)
        for n in range(number)
    ]


def test_a_row_is_late_from_the_instant_of_the_read_on(warehouse: Warehouse) -> None:
    table = sales()
    for day, read in (("2026-05-04", "2026-05-05 00:10"), ("2026-05-05", "2026-05-06 00:10")):
        loaded(warehouse, table, day, read)
    events(
        warehouse,
        ("in_time", "2026-05-04 10:00:00+00", "2026-05-04 10:01:00+00"),
        ("just_before_the_read", "2026-05-04 11:00:00+00", "2026-05-05 00:09:59.999999+00"),
        ("at_the_read", "2026-05-04 12:00:00+00", "2026-05-05 00:10:00+00"),
        ("three_weeks_late", "2026-05-04 23:59:59.999999+00", "2026-05-25 08:00:00+00"),
        ("in_time_for_its_own_day", "2026-05-05 00:00:00+00", "2026-05-05 12:00:00+00"),
        ("never_said_when", "2026-05-04 12:00:00+00", "2026-05-25 08:00:00+00"),
    )
    warehouse.execute("UPDATE raw.events SET arrived_at = NULL WHERE name = 'never_said_when'")
    assert found(warehouse, table, days(table, "2026-05-01", 10)) == {
        "2026-05-04": (2, "05-25 08:00")
    }


def test_a_slice_that_was_never_loaded_is_a_gap_and_has_no_late_rows(warehouse: Warehouse) -> None:
    table = sales()
    loaded(warehouse, table, "2026-05-04", "2026-05-05 00:10")
    events(warehouse, ("of_a_gap", "2026-05-05 10:00:00+00", "2026-05-25 08:00:00+00"))
    assert found(warehouse, table, days(table, "2026-05-01", 10)) == {}


def test_the_newest_load_counts(warehouse: Warehouse) -> None:
    table = sales()
    loaded(warehouse, table, "2026-05-04", "2026-05-05 00:10")
    events(warehouse, ("late", "2026-05-04 10:00:00+00", "2026-05-25 08:00:00+00"))
    assert found(warehouse, table, days(table, "2026-05-04", 1)) != {}
    loaded(warehouse, table, "2026-05-04", "2026-05-25 08:01")
    assert found(warehouse, table, days(table, "2026-05-04", 1)) == {}


@pytest.mark.parametrize(
    ("kind", "sql_type", "early", "late"),
    [
        ("date", "DATE", "2026-05-04", "2026-05-05"),
        ("timestamp", "TIMESTAMP", "2026-05-04 23:59:59", "2026-05-05 00:00:00"),
        ("timestamptz", "TIMESTAMPTZ", "2026-05-05 03:59:59+00", "2026-05-05 04:00:00+00"),
        ("int_yyyymmdd", "INTEGER", "20260504", "20260505"),
        ("iso_text", "TEXT", "2026-05-04T23:00", "2026-05-05"),
    ],
)
def test_each_kind_of_source_column_in_days_of_new_york(
    warehouse: Warehouse, kind: str, sql_type: str, early: str, late: str
) -> None:
    source = Source("raw.events", "event_at", on_kind=kind, ingested_at="arrived_at")
    table = sales(zone="America/New_York", source=source)
    loaded(warehouse, table, "2026-05-04", "2026-05-05 05:00")
    loaded(warehouse, table, "2026-05-05", "2026-05-06 05:00")
    events(
        warehouse,
        ("of_the_4th", early, "2026-05-06 06:00:00+00"),
        ("of_the_5th", late, "2026-05-06 06:00:00+00"),
        ("of_the_5th_too", late, "2026-05-05 06:00:00+00"),
        kind=sql_type,
    )
    assert found(warehouse, table, days(table, "2026-05-03", 4)) == {
        "2026-05-04": (1, "05-06 06:00"),
        "2026-05-05": (1, "05-06 06:00"),
    }


def test_hours_on_the_day_that_has_25(warehouse: Warehouse) -> None:
    table = Table(
        "mart.hours", SliceColumn("day", "timestamptz", "America/New_York"), source=EVENTS
    )
    # 01:00 to 02:00 happens twice in New York on 2026-11-01
    hours = [at("2026-11-01 04:00") + timedelta(hours=n) for n in range(5)]
    slices = [Slice(table, Window(hour, hour + timedelta(hours=1))) for hour in hours]
    for slice_, hour in zip(slices, hours, strict=True):
        loaded(warehouse, table, slice_.window, f"{hour + timedelta(hours=2):%Y-%m-%d %H:%M}")
    events(
        warehouse,
        ("first_half_past_one", "2026-11-01 05:30:00+00", "2026-11-01 07:30:00+00"),
        ("second_half_past_one", "2026-11-01 06:30:00+00", "2026-11-01 07:30:00+00"),
        ("at_the_end_of_its_hour", "2026-11-01 07:00:00+00", "2026-11-03 00:00:00+00"),
    )
    late = found(warehouse, table, slices)
    assert late == {
        slices[1].name: (1, "11-01 07:30"),
        slices[3].name: (1, "11-03 00:00"),
    }


def test_weeks_and_months(warehouse: Warehouse) -> None:
    table = sales()
    week = Slice(table, Window(at("2026-05-04"), at("2026-05-11")))
    month = Slice(table, Window(at("2026-06-01"), at("2026-07-01")))
    loaded(warehouse, table, week.window, "2026-05-11 00:10")
    loaded(warehouse, table, month.window, "2026-07-01 00:10")
    events(
        warehouse,
        ("monday", "2026-05-04 00:00:00+00", "2026-05-11 00:10:00+00"),
        ("sunday", "2026-05-10 23:00:00+00", "2026-05-12 00:10:00+00"),
        ("sunday_in_time", "2026-05-10 23:00:00+00", "2026-05-11 00:00:00+00"),
        ("between_the_two", "2026-05-20 23:00:00+00", "2026-08-11 00:00:00+00"),
        ("june", "2026-06-30 23:00:00+00", "2026-07-02 00:00:00+00"),
    )
    assert found(warehouse, table, [week, month]) == {
        week.name: (2, "05-12 00:10"),
        month.name: (1, "07-02 00:00"),
    }


def test_a_region_is_late_by_its_own_read(warehouse: Warehouse) -> None:
    table = sales(dimensions=("region",))
    warehouse.execute(
        "CREATE SCHEMA raw",
        "CREATE TABLE raw.events (region TEXT, event_at TIMESTAMPTZ, arrived_at TIMESTAMPTZ)",
        *(
            f"INSERT INTO raw.events VALUES ('{region}', '2026-05-04 10:00:00+00', '{arrived}')"
            for region in ("eu", "us", "o''hare")
            for arrived in ("2026-05-05 01:00:00+00", "2026-05-06 01:00:00+00")
        ),
    )
    for region, read in (("eu", "05-05 00:00"), ("us", "05-05 12:00"), ("o'hare", "05-07 00:00")):
        loaded(warehouse, table, "2026-05-04", f"2026-{read}", {"region": region})
    slices = [
        *days(table, "2026-05-04", 1, (("region", "eu"),)),
        *days(table, "2026-05-04", 1, (("region", "us"),)),
        *days(table, "2026-05-04", 1, (("region", "o'hare"),)),
    ]
    assert found(warehouse, table, slices) == {
        "2026-05-04|eu": (2, "05-06 01:00"),
        "2026-05-04|us": (1, "05-06 01:00"),
    }


def test_regions_without_days_and_a_whole_table(warehouse: Warehouse) -> None:
    by_region = Table("mart.regions", source=EVENTS, dimensions=("name",))
    whole = Table("mart.whole", source=EVENTS)
    events(
        warehouse,
        ("eu", "2020-05-04 10:00:00+00", "2026-05-05 01:00:00+00"),
        ("us", "2026-05-04 10:00:00+00", "2026-05-05 01:00:00+00"),
    )
    loaded(warehouse, by_region, None, "2026-05-05 00:00", {"name": "eu"})
    loaded(warehouse, by_region, None, "2026-05-06 00:00", {"name": "us"})
    loaded(warehouse, whole, None, "2026-05-05 00:00")
    slices = [Slice(by_region, None, (("name", name),)) for name in ("eu", "us")]
    assert found(warehouse, by_region, slices) == {"eu": (1, "05-05 01:00")}
    assert found(warehouse, whole, [Slice(whole)]) == {"(whole table)": (2, "05-05 01:00")}


def test_a_table_that_was_loaded_in_other_slices_is_late_by_the_oldest_of_the_newest_reads(
    warehouse: Warehouse,
) -> None:
    table = sales()
    loaded(warehouse, table, "2026-05-04", "2026-05-05 00:00")
    for number in range(5, 11):
        loaded(warehouse, table, f"2026-05-{number:02}", f"2026-05-{number + 1:02} 00:00")
    events(warehouse, ("late", "2026-05-04 10:00:00+00", "2026-05-06 00:00:00+00"))
    week = Slice(table, Window(at("2026-05-04"), at("2026-05-11")))
    assert found(warehouse, table, [week]) == {week.name: (1, "05-06 00:00")}
    loaded(warehouse, table, week.window, "2026-05-12 00:00")
    assert found(warehouse, table, [week]) == {}
    assert found(warehouse, table, days(table, "2026-05-04", 7)) == {}


def test_ten_years_of_days_with_reads_of_their_own_take_a_handful_of_statements(
    warehouse: Warehouse,
) -> None:
    from backfill_assets_tests.operations.many_loads import load_every_day

    table, slices = sales(), days(sales(), "2016-01-01", 3650)
    load_every_day(warehouse, table, slices)
    warehouse.execute(
        "CREATE SCHEMA raw",
        "CREATE TABLE raw.events AS SELECT CAST(day AS TIMESTAMPTZ) AS event_at,"
        " CAST(day AS TIMESTAMPTZ) + hours * INTERVAL '1 hour' AS arrived_at"
        " FROM generate_series(TIMESTAMP '2016-01-01', TIMESTAMP '2025-12-28', INTERVAL '1 day') AS d(day)"
        " CROSS JOIN (VALUES (1), (2), (500)) AS h(hours)",
    )
    asked = 0
    with warehouse.session(read_only=True) as session:
        fetch = session.fetch

        def counting(sql: str) -> list[tuple[Any, ...]]:
            nonlocal asked
            asked += 1
            return fetch(sql)

        session.fetch = counting  # type: ignore[method-assign]
        late = late_slices(session, AuditTable(), table, slices)
    assert len(late) == 3650
    assert {one.rows for one in late} == {1}
    assert asked <= 10


@pytest.mark.parametrize(
    ("source", "said"),
    [
        (None, "it declares no source, so nobody can tell when a row reached it"),
        (Source("raw.events", "event_at"), "its source names no ingested_at"),
        (Source("raw.events", "event_at", ingested_at="clock"), "does not say at which instant"),
        (Source("raw.events", "event_at", ingested_at="nothing"), "has no column 'nothing'"),
    ],
)
def test_what_cannot_tell_when_rows_came_is_refused_in_a_sentence(
    warehouse: Warehouse, source: Source | None, said: str
) -> None:
    table = Table("mart.sales", SliceColumn("day", "date"), source=source)
    loaded(warehouse, table, "2026-05-04", "2026-05-05 00:10")
    events(warehouse)
    warehouse.execute("ALTER TABLE raw.events ADD COLUMN clock TIMESTAMP")
    with pytest.raises(DeclarationError, match=said):
        found(warehouse, table, days(table, "2026-05-04", 1))


def test_a_wall_clock_made_an_instant_in_the_source_is_one(warehouse: Warehouse) -> None:
    sql = "SELECT event_at, clock AT TIME ZONE 'Europe/Berlin' AS arrived_at FROM raw.clocks"
    table = sales(source=Source(sql, "event_at", ingested_at="arrived_at"))
    loaded(warehouse, table, "2026-05-04", "2026-05-05 00:10")
    warehouse.execute(
        "CREATE SCHEMA raw",
        "CREATE TABLE raw.clocks (event_at TIMESTAMPTZ, clock TIMESTAMP)",
        "INSERT INTO raw.clocks VALUES ('2026-05-04 10:00:00+00', '2026-05-05 02:09'),"
        " ('2026-05-04 10:00:00+00', '2026-05-05 02:10')",
    )
    assert found(warehouse, table, days(table, "2026-05-04", 1)) == {
        "2026-05-04": (1, "05-05 00:10")
    }


DAYS_OF_MAY = [f"2026-05-{number:02}" for number in range(1, 32)]


class Shop:
    """A shop whose sales are loaded by day, on a running instance."""

    def __init__(self, daemon: Daemon, warehouse: Warehouse) -> None:
        self.daemon, self.warehouse = daemon, warehouse
        warehouse.execute(
            "CREATE SCHEMA raw",
            "CREATE TABLE raw.sales (id BIGINT, sold_at TIMESTAMPTZ, arrived_at TIMESTAMPTZ)",
        )
        self.sold(*((number, f"{day} 12:00:00+00") for number, day in enumerate(DAYS_OF_MAY)))

    def sold(self, *sales: tuple[int, str]) -> None:
        """Put sales into the source, which arrive now."""
        rows = ", ".join(f"({number}, '{at}', CURRENT_TIMESTAMP)" for number, at in sales)
        self.warehouse.execute(f"INSERT INTO raw.sales VALUES {rows}")

    def load(self, asset: str, days: list[str]) -> None:
        table = Table(f"mart.{asset}", SliceColumn("day", "date"), ("id",))
        select = Select("SELECT CAST(sold_at AS DATE) AS day, id FROM raw.sales", on="sold_at")
        with self.warehouse.session() as session:
            for day in days:
                self.warehouse.write(table, day, select, session=session)

    def table(self, asset: str = "sales") -> list[tuple[str, int]]:
        rows = self.warehouse.rows(f"SELECT day, id FROM mart.{asset} ORDER BY day, id")
        return [(str(day), number) for day, number in rows]

    def find(self, table: str = "mart.sales", **more: Any) -> dict[str, Any]:
        return self.daemon.job("find_late_rows", table=table, **more)

    def tick(self, cursor: str | None = None) -> tuple[list[dg.RunRequest], str | None]:
        """Evaluate the sensor as the daemon does, and return its requests and its cursor."""
        repository = late_location.defs.get_repository_def()
        manager = DeleteInsertIOManager(url=self.warehouse.url)
        context = dg.build_sensor_context(
            instance=self.daemon.instance,
            repository_def=repository,
            cursor=cursor,
            resources={"io_manager": manager},
        )
        found = repository.get_sensor_def("late_rows").evaluate_tick(context)
        return list(found.run_requests or []), found.cursor


@pytest.fixture(scope="module")
def daemon() -> Iterator[Daemon]:
    with daemon_for(Path(late_location.__file__)) as running:
        yield running


@pytest.fixture
def shop(daemon: Daemon, warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch) -> Shop:
    monkeypatch.setenv("LATE_TEST_URL", warehouse.url)
    return Shop(daemon, warehouse)


def test_a_row_that_comes_three_weeks_late_makes_one_run_for_its_partition_alone(
    shop: Shop,
) -> None:
    shop.load("sales", DAYS_OF_MAY[:21])
    shop.sold((100, "2026-05-04 09:00:00+00"))
    assert ("2026-05-04", 100) not in shop.table()
    told = shop.find(launch=True, by="ana")
    assert [(line["partition"], line["late_rows"]) for line in told["lines"]] == [("2026-05-04", 1)]
    assert shop.daemon.end(told["backfill"]) == "COMPLETED_SUCCESS"
    (run,) = shop.daemon.runs(told["backfill"])
    assert run.tags["dagster/partition"] == "2026-05-04"
    assert ("2026-05-04", 100) in shop.table()
    assert len(shop.table()) == 22
    reasons = shop.warehouse.rows(
        f"SELECT partition_key, reason, launched_by FROM backfill.load_audit WHERE backfill_id = '{told['backfill']}'"
    )
    ((key, reason, by),) = reasons
    assert (key, by) == ("2026-05-04", "ana")
    assert reason.startswith("1 row arrived late for 2026-05-04, the last at 20")
    assert shop.find()["lines"] == []


def test_what_is_found_is_only_told_and_the_command_that_is_told_loads_it(shop: Shop) -> None:
    shop.load("sales", DAYS_OF_MAY[:10])
    for number, day in enumerate((3, 5, 6, 7, 9)):
        shop.sold((100 + number, f"2026-05-{day:02} 09:00:00+00"))
    before = shop.table()
    told = shop.find(first="2026-05-02", last="2026-05-07")
    assert told["backfill"] is None
    assert told["partitions"] == "2026-05-03, [2026-05-05...2026-05-07]"
    assert shop.table() == before
    config = json.loads(told["command"].partition("--config-json '")[2].rstrip("'"))
    again = shop.find(**config["ops"]["find_late_rows_op"]["config"] | {"table": "mart/sales"})
    assert shop.daemon.end(again["backfill"]) == "COMPLETED_SUCCESS"
    assert [line["partition"] for line in shop.find()["lines"]] == ["2026-05-09"]


def test_what_is_being_loaded_again_is_not_requested_twice(shop: Shop) -> None:
    shop.load("sales", DAYS_OF_MAY[:5])
    shop.sold((100, "2026-05-02 09:00:00+00"))
    first = shop.find(launch=True)["backfill"]
    shop.sold((101, "2026-05-03 09:00:00+00"))
    second = shop.find(launch=True)
    assert "1 of the partitions are in a backfill for late rows already" in second["summary"]
    third = shop.find(launch=True)
    assert third["backfill"] is None
    assert shop.daemon.end(first) == shop.daemon.end(second["backfill"]) == "COMPLETED_SUCCESS"
    runs = [*shop.daemon.runs(first), *shop.daemon.runs(second["backfill"])]
    assert [run.tags["dagster/partition"] for run in runs] == ["2026-05-02", "2026-05-03"]
    assert shop.find()["lines"] == []


def test_the_sensor_requests_exactly_the_affected_partitions_in_the_backfill_lane(
    shop: Shop,
) -> None:
    shop.load("sales", DAYS_OF_MAY[:10])
    shop.load("told", DAYS_OF_MAY[:10])
    assert shop.tick() == ([], "{}")
    shop.sold((100, "2026-05-02 09:00:00+00"), (101, "2026-05-08 09:00:00+00"))
    requests, cursor = shop.tick()
    assert [(r.partition_key, r.tags["lane"]) for r in requests] == [
        ("2026-05-02", "backfill"),
        ("2026-05-08", "backfill"),
    ]
    assert {tuple(r.asset_selection or ()) for r in requests} == {(dg.AssetKey(["mart", "sales"]),)}
    assert requests[0].tags["reason"].startswith("1 row arrived late for 2026-05-02")
    assert requests[0].tags["launched_by"] == "sensor late_rows"
    assert list(json.loads(cursor or "")) == ["mart/told"]


def test_a_region_of_a_day_is_found_and_requested_alone(shop: Shop) -> None:
    shop.warehouse.execute(
        "CREATE TABLE raw.regions (id BIGINT, region TEXT, sold_at TIMESTAMPTZ, arrived_at TIMESTAMPTZ)",
        "INSERT INTO raw.regions SELECT id, region, sold_at, arrived_at FROM raw.sales"
        " CROSS JOIN (VALUES ('eu'), ('us')) AS r (region)",
    )
    keys = ["2026-05-01|eu", "2026-05-01|us", "2026-05-02|eu", "2026-05-02|us"]
    assert shop.daemon.end(shop.daemon.backfill({"by_region": keys})) == "COMPLETED_SUCCESS"
    shop.warehouse.execute(
        "INSERT INTO raw.regions VALUES (100, 'us', '2026-05-02 09:00:00+00', CURRENT_TIMESTAMP)"
    )
    (request,), _ = shop.tick()
    assert request.partition_key == "2026-05-02|us"
    assert request.tags["dagster/partition"] == "2026-05-02|us"
    told = shop.find("mart.by_region", launch=True, first="2026-05-02", last="2026-05-03")
    assert told["partitions"] == "2026-05-02|us"
    assert shop.daemon.end(told["backfill"]) == "COMPLETED_SUCCESS"
    assert len(shop.daemon.runs(told["backfill"])) == 1
    assert shop.table("by_region").count(("2026-05-02", 100)) == 1
    assert shop.tick()[0] == []


def test_a_day_that_is_not_over_is_left_to_the_live_load(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop.load("sales", DAYS_OF_MAY[:3])
    shop.sold((100, "2026-05-01 09:00:00+00"), (101, "2026-05-02 09:00:00+00"))
    monkeypatch.setattr(
        "backfill_assets.operations.late_sensor._now", lambda: at("2026-05-02 12:00")
    )
    assert [request.partition_key for request in shop.tick()[0]] == ["2026-05-01"]


def test_the_same_late_rows_have_the_same_key_and_newer_ones_another(shop: Shop) -> None:
    shop.load("sales", DAYS_OF_MAY[:10])
    shop.sold((100, "2026-05-02 09:00:00+00"))
    (first,), cursor = shop.tick()
    (again,), _ = shop.tick(cursor)
    shop.sold((101, "2026-05-02 09:00:00+00"))
    (newer,), _ = shop.tick(cursor)
    assert first.run_key == again.run_key != newer.run_key


def test_what_is_only_told_is_told_once_and_again_when_more_comes(
    shop: Shop, caplog: pytest.LogCaptureFixture
) -> None:
    shop.load("told", DAYS_OF_MAY[:10])
    shop.sold((100, "2026-05-02 09:00:00+00"))
    _, cursor = shop.tick()
    _, cursor = shop.tick(cursor)
    assert caplog.text.count("1 row arrived late for 2026-05-02") == 1
    shop.sold((101, "2026-05-02 09:00:00+00"))
    shop.tick(cursor)
    assert caplog.text.count("2 rows arrived late for 2026-05-02") == 1


def test_a_source_that_was_filled_anew_is_told_and_launches_nothing(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("backfill_assets.operations.late_sensor._MOST", 3)
    shop.load("sales", DAYS_OF_MAY[:5])
    shop.warehouse.execute("UPDATE raw.sales SET arrived_at = CURRENT_TIMESTAMP")
    requests, cursor = shop.tick()
    assert requests == []
    assert list(json.loads(cursor or "")) == ["mart/sales"]


@pytest.mark.parametrize(
    ("config", "said"),
    [
        ({"table": "mart.daily"}, "it declares no source"),
        ({"table": "mart.nothing"}, "no asset of this location has that key"),
        ({"table": "mart.sales", "first": "2027-01-01"}, "there is no partition '2027-01-01'"),
        (
            {"table": "mart.sales", "first": "2026-05-03", "last": "2026-05-02"},
            "its first partition comes after its last",
        ),
    ],
)
def test_what_cannot_be_asked_is_one_sentence(
    shop: Shop, config: dict[str, str], said: str
) -> None:
    shop.load("sales", ["2026-05-01"])
    assert said in shop.daemon.job("find_late_rows", ok=False, **config)["said"]


def test_the_daemon_launches_what_the_sensor_requests_once_until_newer_rows_come(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    warehouse = Warehouse(f"duckdb:///{tmp_path}/w.duckdb")
    with daemon_for(Path(late_location.__file__), warehouse.url) as daemon:
        monkeypatch.setenv("LATE_TEST_URL", warehouse.url)
        shop = Shop(daemon, warehouse)
        shop.load("sales", DAYS_OF_MAY[:10])
        shop.sold((100, "2026-05-02 09:00:00+00"))
        # what was requested waits in the queue, as far as the sensor knows
        monkeypatch.setattr(SyncInMemoryRunLauncher, "launch_run", lambda *_: None)
        assert daemon.sense("late_rows") == []
        daemon.instance.start_sensor(daemon.sensor("late_rows"))
        assert daemon.sense("late_rows") == ["2026-05-02"]
        assert daemon.sense("late_rows") == ["2026-05-02"]
        shop.sold((101, "2026-05-02 09:00:00+00"))
        assert daemon.sense("late_rows") == ["2026-05-02", "2026-05-02"]
        monkeypatch.undo()
        monkeypatch.setenv("LATE_TEST_URL", warehouse.url)
        daemon.execute("late_rows")
        assert ("2026-05-02", 101) in shop.table()
        assert daemon.sense("late_rows") == ["2026-05-02", "2026-05-02"]
        lanes = warehouse.rows(
            "SELECT DISTINCT partition_key, lane, launched_by FROM backfill.load_audit WHERE reason IS NOT NULL"
        )
        assert lanes == [("2026-05-02", "backfill", "sensor late_rows")]


def test_a_sensor_that_is_to_do_what_there_is_not_is_refused(warehouse: Warehouse) -> None:
    from backfill_assets.io_managers.declaration import late_rows_of

    with pytest.raises(DeclarationError, match="Give 'report' or 'backfill'"):
        late_rows_of({"late_rows": "everything"}, "mart/sales")
