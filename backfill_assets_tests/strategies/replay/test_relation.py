"""A week of an event-store table read again: by JSON or by columns, in pieces, as far as it went when it was opened."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from typing import Any

import dagster as dg
import pytest

from backfill_assets.errors import Away, DeclarationError, Refused
from backfill_assets.strategies.replay import Events, Json, TableEvents
from backfill_assets.table import SliceColumn
from backfill_assets_tests.io_managers.conftest import Warehouse, failure_of
from backfill_assets_tests.strategies.replay.conftest import (
    ALL,
    EVENTS,
    ORDERS,
    at,
    order,
    orders_from,
)

IN_MAY = datetime(2026, 5, 1, tzinfo=timezone.utc)


def store(warehouse: Warehouse, *rows: tuple[int, datetime, Any], at_type: str = "TIMESTAMPTZ") -> None:  # fmt: skip
    """Keep events as (position, time stored, event) in `shop.events`; a dict becomes JSON."""
    warehouse.execute(
        "CREATE SCHEMA IF NOT EXISTS shop",
        f"CREATE TABLE IF NOT EXISTS shop.events (id BIGINT, stored_at {at_type}, body JSON)",
    )
    for number, stored, event in rows:
        moment = "NULL" if stored is None else f"'{stored.isoformat(' ') if at_type.startswith('TIMESTAMP') else stored.date().isoformat()}'"  # fmt: skip
        warehouse.execute(f"INSERT INTO shop.events VALUES ({number}, {moment}, '{json.dumps(event)}')")  # fmt: skip


def a_week(orders_a_day: int = 3) -> list[tuple[int, datetime, dict[str, Any]]]:
    """Return orders of 1 to 7 May; each is stored a minute after it was made."""
    made = [(d * 100 + n, at(d, n * 24 / orders_a_day), f"{d}.{n:02}") for d in range(1, 8) for n in range(orders_a_day)]  # fmt: skip
    return [(n, t + timedelta(minutes=1), order(n, t, amount)) for n, t, amount in made]


def from_json(warehouse: Warehouse, **options: Any) -> TableEvents:
    return TableEvents(warehouse.url, "shop.events", at="stored_at", value="body", **options)


def expected(*days: int) -> list[tuple[str, int, str]]:
    return [(f"2026-05-{d:02}", d * 100 + n, f"{d}.{n:02}") for d in days for n in range(3)]


@pytest.mark.parametrize("position", [None, "id"])
def test_each_order_of_the_store_lies_on_its_day_once_however_often_it_is_replayed(
    warehouse: Warehouse, position: str | None
) -> None:
    store(warehouse, *a_week())
    asset = orders_from(from_json(warehouse, position=position))
    warehouse.run_range("2026-05-02", "2026-05-04", asset)
    assert warehouse.rows(ALL) == expected(2, 3, 4)
    warehouse.run(asset, partition_key="2026-05-03")
    warehouse.run_range("2026-05-02", "2026-05-03", asset)
    assert warehouse.rows(ALL) == expected(2, 3, 4)
    ((strategy, detail),) = warehouse.rows(
        "SELECT strategy, detail FROM backfill.load_audit WHERE partition_key = '2026-05-04'"
    )
    told = json.loads(detail)["source"]
    assert (strategy, told["source"], told["events"]) == ("replay", "table shop.events", 3)
    assert told["offsets"]["shop.events"][0] < told["offsets"]["shop.events"][1]


def test_events_in_typed_columns_are_read_by_their_names_to_the_last_digit(
    warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    warehouse.execute(
        "CREATE SCHEMA shop",
        "CREATE TABLE shop.typed (stored_at TIMESTAMPTZ, order_id BIGINT, ordered_at TIMESTAMPTZ, amount DECIMAL(38, 2))",
        "INSERT INTO shop.typed VALUES ('2026-05-02 12:00:00+00', 1, '2026-05-03 00:00:00+00', 12345678901234567890.25)",
        "INSERT INTO shop.typed VALUES ('2026-05-03 13:00:00+00', 2, '2026-05-03 12:00:00+00', NULL)",
        "INSERT INTO shop.typed VALUES ('2026-05-03 23:59:00+00', 1, '2026-05-03 00:00:00+00', 12345678901234567890.75)",
    )
    monkeypatch.setenv("EVENT_STORE_URL", warehouse.url)
    source = TableEvents(
        dg.EnvVar("EVENT_STORE_URL"), "shop.typed", at="stored_at", columns=("order_id", "ordered_at", "amount"),
        complete_since=IN_MAY,
    )  # fmt: skip
    events = Events({**EVENTS.fields, "amount": "DECIMAL(38, 2)"}, time="ordered_at", key=("order_id",), early=timedelta(days=1))  # fmt: skip
    warehouse.run(orders_from(source, events), partition_key="2026-05-03")
    assert warehouse.rows(ALL) == [
        ("2026-05-03", 1, "12345678901234567890.75"),
        ("2026-05-03", 2, None),
    ]


def test_days_before_the_first_event_are_refused_and_whole_where_it_is_declared(
    warehouse: Warehouse,
) -> None:
    store(warehouse, *[row for row in a_week() if row[1] >= at(3, 0)])
    said = failure_of(warehouse.run(orders_from(from_json(warehouse)), partition_key="2026-05-03", ok=False))  # fmt: skip
    assert "table shop.events no longer holds all their events" in said
    assert "table shop.events begins at 2026-05-03T00:01:00+00:00, a gap of 1:01:00" in said
    assert "The first whole one that can be replayed is 2026-05-04" in said
    warehouse.run(orders_from(from_json(warehouse, complete_since=at(2, 0))), partition_key="2026-05-03")  # fmt: skip
    assert warehouse.rows(ALL) == expected(3)


def test_an_empty_store_is_not_taken_for_days_without_orders(warehouse: Warehouse) -> None:
    store(warehouse, *a_week())
    asset = orders_from(from_json(warehouse))
    warehouse.run(asset, partition_key="2026-05-05")
    warehouse.execute("DELETE FROM shop.events")
    said = failure_of(warehouse.run(asset, partition_key="2026-05-05", ok=False))
    assert "table shop.events has nothing left" in said
    assert warehouse.rows(ALL) == expected(5)


def test_an_empty_store_that_is_declared_complete_says_that_nothing_was_ordered(
    warehouse: Warehouse,
) -> None:
    store(warehouse)
    columns = {"order_date": "DATE", "order_id": "BIGINT", "amount": "DECIMAL(18, 2)"}
    may_be_empty = replace(ORDERS, allow_empty=True, columns=columns)
    source = from_json(warehouse, complete_since=at(1, 0))
    warehouse.run(orders_from(source, table=may_be_empty), partition_key="2026-05-05")
    assert warehouse.rows(ALL) == []


@pytest.mark.parametrize("position", [None, "id"])
def test_events_that_come_after_the_opening_are_not_read(
    warehouse: Warehouse, position: str | None
) -> None:
    store(warehouse, *a_week())
    source = from_json(warehouse, position=position)
    with source.open("a-test") as reading:
        late = at(7, 20) if position is None else at(2, 1)
        store(warehouse, (9_999, late, order(9_999, at(2))))
        (shard,) = reading.shards
        (batch,) = reading.read(shard, at(1, 0), None)
        reading.must_be_whole()
    assert batch.num_rows == 21
    with source.open("a-test") as reading:
        (batch,) = reading.read(reading.shards[0], at(1, 0), None)
    assert batch.num_rows == 22


def test_a_store_that_lost_rows_while_it_was_read_is_told(warehouse: Warehouse) -> None:
    store(warehouse, *a_week())
    source = from_json(warehouse)
    with source.open("a-test") as reading:
        list(reading.read(reading.shards[0], at(1, 0), None))
        warehouse.execute("DELETE FROM shop.events WHERE id = 500")
        with pytest.raises(Away, match="1 of the 21 rows that it had when the run began are gone"):
            reading.must_be_whole()
    with source.open("a-test") as reading:
        list(reading.read(reading.shards[0], at(1, 0), None))
        warehouse.execute("DELETE FROM shop.events WHERE id < 300")
        with pytest.raises(Refused, match=r"it begins at 2026-05-03T00:01:00\+00:00 now"):
            reading.must_be_whole()


def test_a_window_is_read_in_pieces_none_larger_than_a_result_may_be(
    warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("backfill_assets.strategies.replay.relation._ROWS", 10)
    noon = at(5, 12)
    burst = [(500_000 + n, noon + timedelta(milliseconds=n), order(500_000 + n, noon)) for n in range(25)]  # fmt: skip
    store(warehouse, *a_week(), *burst)
    with from_json(warehouse).open("a-test") as reading:
        batches = list(reading.read(reading.shards[0], at(2, 0), at(7, 0)))
        assert reading.span(reading.shards[0]) is not None
    assert len(batches) > 4
    assert all(batch.num_rows <= 10 for batch in batches)
    found = [json.loads(value)["order_id"] for b in batches for value in b["value"].to_pylist()]
    stored = sorted((t, n) for n, t, _ in [*a_week(), *burst] if at(2, 0) <= t < at(7, 0))
    assert found == [number for _, number in stored]
    assert [n for b in batches for n in b["ordinal"].to_pylist()] == list(range(len(found)))


@pytest.mark.parametrize(
    ("kind", "at_type"), [("date", "DATE"), ("iso_text", "VARCHAR"), ("timestamp", "TIMESTAMP")]
)
def test_a_store_whose_time_is_a_day_or_a_wall_clock_is_read_the_same(
    warehouse: Warehouse, kind: Any, at_type: str
) -> None:
    naive = [(n, t.replace(tzinfo=None), event) for n, t, event in a_week()]
    store(warehouse, *naive, at_type=at_type)
    source = TableEvents(warehouse.url, "shop.events", at=SliceColumn("stored_at", kind), value="body")  # fmt: skip
    warehouse.run_range("2026-05-03", "2026-05-04", orders_from(source))
    assert warehouse.rows(ALL) == expected(3, 4)


def test_an_hour_that_a_wall_clock_shows_twice_is_read_whole(warehouse: Warehouse) -> None:
    # in Berlin 02:30 comes twice on 25 October 2026: at 00:30 and at 01:30 UTC
    twice = datetime(2026, 10, 25, 2, 30)
    store(warehouse, (0, twice - timedelta(days=2), {}), (1, twice, {}), (2, twice, {}), (3, twice + timedelta(days=2), {}), at_type="TIMESTAMP")  # fmt: skip
    source = TableEvents(warehouse.url, "shop.events", at=SliceColumn("stored_at", "timestamp", "Europe/Berlin"), value="body", position="id")  # fmt: skip
    with source.open("a-test") as reading:
        for hour in (0, 1):
            start = datetime(2026, 10, 25, hour, tzinfo=timezone.utc)
            (batch,) = reading.read(reading.shards[0], start, start + timedelta(hours=1))
            assert {1, 2} <= set(batch["ordinal"].to_pylist()), f"{hour} o'clock UTC"


def test_events_of_one_key_follow_their_position_and_else_their_time(warehouse: Warehouse) -> None:
    same = at(3, 5)
    store(warehouse, (7, same, order(1, same, "7.00")), (8, same, order(1, same, "1.00")), (1, at(1, 0), {}))  # fmt: skip
    source = from_json(warehouse, position="id", complete_since=IN_MAY)
    warehouse.run(orders_from(source), partition_key="2026-05-03")
    assert warehouse.rows(ALL) == [("2026-05-03", 1, "1.00")]


def test_the_last_change_of_an_order_moves_it_to_another_day_and_a_tombstone_removes_it(
    warehouse: Warehouse,
) -> None:
    warehouse.execute(
        "CREATE SCHEMA shop",
        "CREATE TABLE shop.changes (id BIGINT, stored_at TIMESTAMPTZ, body VARCHAR, order_id BIGINT, region VARCHAR)",
    )
    for number, (order_id, event) in enumerate(
        [(1, order(1, at(3))), (2, order(2, at(3))), (3, order(3, at(3))), (1, order(1, at(4))), (2, None)]
    ):  # fmt: skip
        body = "NULL" if event is None else f"'{json.dumps(event)}'"
        warehouse.execute(f"INSERT INTO shop.changes VALUES ({number}, '2026-05-03 12:00:00+00', {body}, {order_id}, 'eu')")  # fmt: skip
    source = TableEvents(warehouse.url, "shop.changes", at="stored_at", value="body", key=("order_id", "region"), position="id", complete_since=IN_MAY)  # fmt: skip
    events = Events(EVENTS.fields, time="ordered_at", key=("order_id",), decode=Json(tombstones="delete", within="table"), late=None)  # fmt: skip
    warehouse.run_range("2026-05-03", "2026-05-04", orders_from(source, events))
    assert [row[:2] for row in warehouse.rows(ALL)] == [("2026-05-04", 1), ("2026-05-03", 3)]


def test_an_event_that_cannot_be_read_is_put_aside_once_by_its_time(warehouse: Warehouse) -> None:
    store(warehouse, *a_week(), (0, at(3, 4), {"order_id": "one"}), (0, at(3, 4), {"order_id": "two"}))  # fmt: skip
    events = Events(EVENTS.fields, time="ordered_at", key=("order_id",), poison="quarantine")
    asset = orders_from(from_json(warehouse), events)
    warehouse.run(asset, partition_key="2026-05-03")
    warehouse.run_range("2026-05-02", "2026-05-04", asset)
    assert warehouse.rows(ALL) == expected(2, 3, 4)
    found = warehouse.rows("SELECT shard, position FROM backfill.replay_quarantine ORDER BY 2")
    assert found == [("shop.events", "2026-05-03T04:00:00+00:00"), ("shop.events", "2026-05-03T04:00:00+00:00 #1")]  # fmt: skip


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"table": "shop.nothing"}, "there is no such table in "),
        ({"at": "created"}, "it has no column created, only id, stored_at, body"),
        ({"position": "offset"}, "it has no column offset"),
    ],
)
def test_a_table_or_a_column_that_is_not_there_is_told_before_anything_is_changed(
    warehouse: Warehouse, options: dict[str, Any], why: str
) -> None:
    store(warehouse, *a_week())
    given = {"table": "shop.events", "at": "stored_at", "value": "body"} | options
    source = TableEvents(warehouse.url, **given)
    said = failure_of(warehouse.run(orders_from(source), partition_key="2026-05-03", ok=False))
    assert why in said


def test_a_row_without_its_time_would_never_be_read_so_it_is_told(warehouse: Warehouse) -> None:
    store(warehouse, *a_week(), (1, None, order(1, at(3))))  # type: ignore[arg-type]
    said = failure_of(warehouse.run(orders_from(from_json(warehouse)), partition_key="2026-05-03", ok=False))  # fmt: skip
    assert "1 of its rows have no stored_at, so nobody would read them" in said


def test_a_declaration_that_cannot_be_right_is_refused_at_once() -> None:
    with pytest.raises(DeclarationError, match="needs either value or columns"):
        TableEvents("duckdb:///a.duckdb", "shop.events")
    with pytest.raises(DeclarationError, match="has no zone"):
        TableEvents("duckdb:///a.duckdb", "shop.events", value="body", complete_since=datetime(2026, 5, 1))  # fmt: skip
