"""A table's changes read again: the last one of each row counts, wherever and whenever it came, and every row lies on one day."""

from __future__ import annotations

import base64
import json
from datetime import date, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import dagster as dg
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from backfill_assets.strategies.replay import (
    Debezium,
    Events,
    Field,
    FileEvents,
    KafkaEvents,
    replay_asset,
)
from backfill_assets.table import SliceColumn, Table
from backfill_assets_tests.io_managers.conftest import Warehouse, failure_of
from backfill_assets_tests.kafka_broker import Broker
from backfill_assets_tests.strategies.replay.conftest import at, ms

DAYS = dg.DailyPartitionsDefinition("2026-05-01", end_date="2026-05-11")
COLUMNS = {"order_date": "DATE", "id": "BIGINT", "amount": "DECIMAL(18, 2)"}
ORDERS = Table(
    "analytics.fct_orders",
    slice_column=SliceColumn("order_date", "date"),
    unique_key=("id",),
    columns=COLUMNS,
    allow_empty=True,
    max_shrink=1.0,
)
EVENTS = Events(
    fields={"id": "BIGINT", "ordered_at": "TIMESTAMPTZ", "amount": "DECIMAL(18, 2)"},
    time="ordered_at",
    key=("id",),
    decode=Debezium(),
)
TO_ROWS = "SELECT CAST(ordered_at AS DATE) AS order_date, id, amount FROM events"
ALL = "SELECT CAST(order_date AS VARCHAR), id, CAST(amount AS VARCHAR) FROM analytics.fct_orders ORDER BY 2, 1"

pytestmark = pytest.mark.only("duckdb", why="what differs is how events are read, not the warehouse")  # fmt: skip


class Feed:
    """The changes of a table as files: a folder for each shard, changes in the order in which they came."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._came: dict[int, list[tuple[datetime, bytes | None, bytes | None]]] = {}

    def add(self, *values: Any, shard: int = 0, key: Any = None, came: datetime | None = None) -> Feed:  # fmt: skip
        """Add events; None is a tombstone, and what is neither bytes nor None goes as JSON."""
        for value in values:
            self._came.setdefault(shard, []).append((came or at(3), _body(key), _body(value)))
        return self

    def source(self) -> FileEvents:
        for shard, came in self._came.items():
            times, keys, bodies = zip(*came, strict=True)
            (self.folder / f"shard-{shard}").mkdir(parents=True, exist_ok=True)
            columns = {
                "at": pa.array(times, pa.timestamp("us", "UTC")),
                "key": pa.array(keys, pa.binary()),
                "value": pa.array(bodies, pa.binary()),
            }
            pq.write_table(pa.table(columns), self.folder / f"shard-{shard}" / "events.parquet")
        return FileEvents(self.folder, complete_since=at(-5, 0))


def _body(value: Any) -> bytes | None:
    return value if isinstance(value, (bytes, type(None))) else json.dumps(value).encode()


@pytest.fixture
def feed(tmp_path: Path) -> Feed:
    return Feed(tmp_path / "feed")


def row(number: int, ordered: datetime, amount: str = "1.00", **more: Any) -> dict[str, Any]:
    return {"id": number, "ordered_at": ordered.isoformat(), "amount": amount, **more}


def change(op: str, lsn: int | None, before: Any = None, after: Any = None, **more: Any) -> dict[str, Any]:  # fmt: skip
    """Return an envelope as it comes without its schema."""
    source = {"connector": "postgresql", "table": "orders", "ts_ms": ms(at(3)), **({} if lsn is None else {"lsn": lsn})}  # fmt: skip
    return {"before": before, "after": after, "op": op, "source": source, "ts_ms": ms(at(3)), **more}  # fmt: skip


def with_schema(payload: Any) -> dict[str, Any]:
    return {"schema": {"type": "struct", "name": "shop.orders.Envelope", "fields": []}, "payload": payload}  # fmt: skip


def asset_of(source: Any, events: Events = EVENTS, **options: Any):
    options = {"transform": TO_ROWS, "partitions_def": DAYS, "table": ORDERS} | options
    return replay_asset(["analytics", "fct_orders"], source=source, events=events, **options)


def replayed(warehouse: Warehouse, feed: Feed, first: int = 3, last: int = 4, events: Events = EVENTS) -> list[tuple[Any, ...]]:  # fmt: skip
    """Replay days of May and return all rows."""
    warehouse.run_range(f"2026-05-{first:02}", f"2026-05-{last:02}", asset_of(feed.source(), events))  # fmt: skip
    return warehouse.rows(ALL)


def refused(warehouse: Warehouse, feed: Feed, events: Events = EVENTS) -> str:
    """Replay 3 May, which cannot be done, and return the sentence that says why."""
    return failure_of(warehouse.run(asset_of(feed.source(), events), partition_key="2026-05-03", ok=False))  # fmt: skip


@pytest.mark.parametrize("wrapped", [lambda event: event, with_schema], ids=["bare", "with schema"])
def test_a_row_is_as_its_last_change_left_it(
    warehouse: Warehouse, feed: Feed, wrapped: Any
) -> None:
    created, updated, deleted, snapped = (row(n, at(3), f"{n}.00") for n in (1, 2, 3, 4))
    feed.add(
        wrapped(change("r", 5, after=snapped)),
        wrapped(change("c", 10, after=created)),
        wrapped(change("c", 11, after=updated)),
        wrapped(change("u", 12, before=updated, after=updated | {"amount": "2.50"})),
        wrapped(change("c", 13, after=deleted)),
        wrapped(change("d", 14, before=deleted)),
    )
    assert replayed(warehouse, feed) == [
        ("2026-05-03", 1, "1.00"),
        ("2026-05-03", 2, "2.50"),
        ("2026-05-03", 4, "4.00"),
    ]


def test_what_is_no_change_of_a_row_is_left_out(warehouse: Warehouse, feed: Feed) -> None:
    kept = row(1, at(3))
    marks = [
        None,
        {"ts_ms": ms(at(3))},
        {"status": "BEGIN", "id": "571:53195829", "event_count": None, "data_collections": None, "ts_ms": 1},
        {"status": "END", "id": "571:53195829", "event_count": 2, "data_collections": [], "ts_ms": 1},
        {"source": {"server": "shop"}, "databaseName": "shop", "ddl": "ALTER TABLE orders ADD x INT", "ts_ms": 1},
        change("m", 3) | {"message": {"prefix": "a", "content": "bm90aGluZw=="}},
    ]  # fmt: skip
    feed.add(change("c", 1, after=kept), *marks, *map(with_schema, marks), {"schema": None, "payload": None})  # fmt: skip
    assert replayed(warehouse, feed) == [("2026-05-03", 1, "1.00")]
    ((detail,),) = warehouse.rows("SELECT detail FROM backfill.load_audit WHERE partition_key = '2026-05-03'")  # fmt: skip
    assert json.loads(detail)["source"]["events"] == 1


def test_a_row_that_moves_to_another_day_is_gone_from_the_old_and_on_the_new(
    warehouse: Warehouse, feed: Feed
) -> None:
    feed.add(change("c", 1, after=row(1, at(3))), change("c", 2, after=row(2, at(3))))
    assert replayed(warehouse, feed) == [("2026-05-03", 1, "1.00"), ("2026-05-03", 2, "1.00")]
    # it is told a week later, far behind the days that are replayed
    feed.add(change("u", 3, before={"id": 1}, after=row(1, at(4))), came=at(9))
    assert replayed(warehouse, feed, 3, 3) == [("2026-05-03", 2, "1.00")]
    assert replayed(warehouse, feed, 4, 4) == [("2026-05-04", 1, "1.00"), ("2026-05-03", 2, "1.00")]


def test_a_deletion_that_tells_only_the_key_removes_the_row_from_its_day(
    warehouse: Warehouse, feed: Feed
) -> None:
    feed.add(*(change("c", n, after=row(n, at(3))) for n in (1, 2, 3, 4)))
    feed.add(change("d", 11, before={"id": 1, "ordered_at": None, "amount": None}))
    # where columns may not be empty, some servers fill in what is no value of the row
    feed.add(change("d", 12, before={"id": 2, "ordered_at": "", "amount": "nothing"}))
    feed.add(change("d", 13), key={"id": 3}, came=at(8))
    feed.add(with_schema(change("d", 14)), key=with_schema({"id": 4}))
    feed.add(change("c", 15, after=row(5, at(3))))
    assert replayed(warehouse, feed) == [("2026-05-03", 5, "1.00")]


def test_the_last_change_is_told_by_the_log_wherever_and_whenever_it_came(
    warehouse: Warehouse, feed: Feed
) -> None:
    feed.add(change("u", 30, after=row(1, at(3), "3.00")), shard=0)
    feed.add(change("u", 20, after=row(1, at(3), "2.00")), shard=2, came=at(5))
    feed.add(change("c", 10, after=row(1, at(4), "1.00")), shard=1)
    feed.add(change("d", 41, before={"id": 2}), shard=0)
    feed.add(change("c", 40, after=row(2, at(3))), shard=1, came=at(6))
    # 10 comes after 9, which texts would not say
    feed.add(change("c", 9, after=row(3, at(3), "9.00")), change("u", 10, after=row(3, at(3), "10.00")))  # fmt: skip
    assert replayed(warehouse, feed) == [("2026-05-03", 1, "3.00"), ("2026-05-03", 3, "10.00")]


def test_a_row_of_a_snapshot_is_overtaken_by_what_was_streamed(
    warehouse: Warehouse, feed: Feed
) -> None:
    feed.add(
        change("r", 5, after=row(1, at(3), "1.00")),
        change("r", 5, after=row(2, at(3), "2.00")),
        change("u", 6, after=row(1, at(3), "1.50")),
        # a snapshot beside the stream has no place in the log
        change("r", None, after=row(1, at(3), "1.40")),
        change("r", None, after=row(3, at(3), "3.00")),
    )
    assert replayed(warehouse, feed) == [
        ("2026-05-03", 1, "1.50"),
        ("2026-05-03", 2, "2.00"),
        ("2026-05-03", 3, "3.00"),
    ]


def test_a_changed_primary_key_leaves_one_row_under_the_new_one(
    warehouse: Warehouse, feed: Feed
) -> None:
    feed.add(change("c", 1, after=row(1, at(3))))
    feed.add(change("d", 2, before=row(1, at(3))), None, key={"id": 1})
    feed.add(change("c", 2, after=row(7, at(3))), key={"id": 7})
    assert replayed(warehouse, feed) == [("2026-05-03", 7, "1.00")]


def test_a_row_that_was_deleted_and_comes_again_is_there(warehouse: Warehouse, feed: Feed) -> None:
    feed.add(change("c", 1, after=row(1, at(3))), change("d", 2, before={"id": 1}), None)
    feed.add(change("c", 3, after=row(1, at(4), "4.00")))
    assert replayed(warehouse, feed) == [("2026-05-04", 1, "4.00")]


@pytest.mark.parametrize(
    "amount", ["0.00", "5.00", "-0.01", "-1.28", "1.28", "9999999999999999.99"]
)
def test_a_decimal_that_travels_as_bytes_keeps_every_digit(
    warehouse: Warehouse, feed: Feed, amount: str
) -> None:
    unscaled = int(amount.replace(".", ""))
    size = max(1, (unscaled + (unscaled < 0)).bit_length() // 8 + 1)
    sent = base64.b64encode(unscaled.to_bytes(size, "big", signed=True)).decode()
    fields = {**EVENTS.fields, "amount": Field("DECIMAL(18, 2)", encoding="base64")}
    events = Events(fields, time="ordered_at", key=("id",), decode=Debezium())
    feed.add(change("c", 1, after=row(1, at(3), sent)), change("d", 2, before=row(2, at(3), sent)))
    assert replayed(warehouse, feed, events=events) == [("2026-05-03", 1, amount)]


_MOMENT = datetime(2026, 5, 3, 23, 59, 59, 999_999, timezone.utc)


@pytest.mark.parametrize(
    ("field", "sent", "seen"),
    [
        (Field("DATE", unit="days"), (date(2026, 5, 3) - date(1970, 1, 1)).days, "2026-05-03"),
        (Field("TIMESTAMP", unit="ms"), ms(at(3)), "2026-05-03 12:00:00"),
        (Field("TIMESTAMP", unit="us"), ms(at(4, 0)) * 1000 - 1, "2026-05-03 23:59:59.999999"),
        (Field("TIMESTAMP", unit="ns"), (ms(at(4, 0)) * 1000 - 1) * 1000 + 999, "2026-05-03 23:59:59.999999"),
        (Field("TIMESTAMPTZ", unit="us"), ms(at(4, 0)) * 1000 - 1, "2026-05-03 23:59:59.999999+00"),
        (Field("TIMESTAMPTZ"), "2026-05-03T23:59:59.999999Z", "2026-05-03 23:59:59.999999+00"),
        (Field("TIMESTAMPTZ"), "2026-05-04T01:59:59.999999+02:00", "2026-05-03 23:59:59.999999+00"),
        (Field("DATE"), "2026-05-03", "2026-05-03"),
        (Field("TIMESTAMP", unit="ms"), "1777809600000", "2026-05-03 12:00:00"),
    ],
)  # fmt: skip
def test_a_time_in_each_of_the_connectors_spellings_lies_on_its_day(
    warehouse: Warehouse, feed: Feed, field: Field, sent: Any, seen: str
) -> None:
    fields = {"id": "BIGINT", "ordered_at": field, "amount": "DECIMAL(18, 2)"}
    events = Events(fields, time="ordered_at", key=("id",), decode=Debezium())
    feed.add(change("c", 1, after=row(1, at(3)) | {"ordered_at": sent}))
    table = Table("analytics.fct_orders", slice_column=SliceColumn("order_date", "date"))
    asset = asset_of(feed.source(), events, table=table, transform="SELECT CAST(ordered_at AS DATE) AS order_date, CAST(ordered_at AS VARCHAR) AS seen FROM events")  # fmt: skip
    warehouse.run(asset, partition_key="2026-05-03")
    found = warehouse.rows("SELECT CAST(order_date AS VARCHAR), seen FROM analytics.fct_orders")
    assert found == [("2026-05-03", seen)]


@pytest.mark.parametrize(
    ("unit", "sent"),
    [
        *((unit, sent) for unit in ("s", "ms", "us", "ns", "days") for sent in (-(10**28), 10**40, "soon")),
        ("us", 2**63 - 1),
        ("days", 2**31 - 1),
        ("ms", 1e300),
    ],
)  # fmt: skip
def test_a_time_that_is_out_of_all_bounds_is_told_like_any_other_wrong_value(
    warehouse: Warehouse, feed: Feed, unit: Any, sent: Any
) -> None:
    kind = "DATE" if unit == "days" else "TIMESTAMPTZ"
    fields = {"id": "BIGINT", "ordered_at": Field(kind, unit=unit), "amount": "DECIMAL(18, 2)"}
    events = Events(fields, time="ordered_at", key=("id",), decode=Debezium())
    feed.add(change("c", 1, after=row(1, at(3)) | {"ordered_at": sent}))
    assert "folder shard-0 offset 0: field ordered_at holds" in refused(warehouse, feed, events)


def test_a_field_may_be_of_the_envelope(warehouse: Warehouse, feed: Feed) -> None:
    fields = {**EVENTS.fields, "origin": Field("VARCHAR", path="@source.table")}
    events = Events(fields, time="ordered_at", key=("id",), decode=Debezium(), deleted="origin = 'drafts'")  # fmt: skip
    draft = change("c", 2, after=row(2, at(3)))
    draft["source"]["table"] = "drafts"
    feed.add(change("c", 1, after=row(1, at(3))), draft)
    assert replayed(warehouse, feed, events=events) == [("2026-05-03", 1, "1.00")]


@pytest.mark.parametrize(
    ("event", "why"),
    [
        (change("t", 9), "the table was truncated, which no slice can repeat"),
        (row(1, at(3)), "it has no op, so it is no change but perhaps a row without its envelope"),
        (change("x", 9, after=row(1, at(3))), "its op is x, and not c, u, r or d"),
        (change("u", 9, before=row(1, at(3))), "its op is u and it has no row after the change"),
        (change("d", 9), "its op is d and it has no row before the change"),
        (change("c", 9, after={"id": 1, "amount": "1.00"}), "it has no ordered_at, which is its time"),
        (change("d", 9, before={"ordered_at": at(3).isoformat()}), "it has no id, which is of its key"),
        (change("c", 9, after=row(1, at(3), "1.005")), "field amount holds 1.005, which is no DECIMAL(18, 2)"),
        (b"\xff\xfe", "it is not UTF-8 text"),
        (b"{", "it is no JSON"),
        (b"[1]", "it has no op"),
    ],
)  # fmt: skip
def test_a_change_that_cannot_be_repeated_stops_the_run_and_is_named(
    warehouse: Warehouse, feed: Feed, event: Any, why: str
) -> None:
    feed.add(change("c", 1, after=row(1, at(3))), event)
    assert f"folder shard-0 offset 1: {why}" in refused(warehouse, feed)


def test_a_large_value_that_was_not_logged_is_told_and_not_written(
    warehouse: Warehouse, feed: Feed
) -> None:
    events = Events({**EVENTS.fields, "note": "VARCHAR"}, time="ordered_at", key=("id",), decode=Debezium())  # fmt: skip
    unlogged = "__debezium_unavailable_value"
    feed.add(change("c", 1, after=row(1, at(3), note="long")), change("d", 2, before=row(1, at(3), note=unlogged)))  # fmt: skip
    assert replayed(warehouse, feed, events=events) == []
    feed.add(change("u", 3, after=row(1, at(3), note=unlogged)))
    said = refused(warehouse, feed, events)
    assert "field note was not logged, since it is large and was not changed" in said
    assert "REPLICA IDENTITY FULL" in said
    # nobody is stopped by a field that is not declared
    assert replayed(warehouse, feed) == [("2026-05-03", 1, "1.00")]


def test_changes_on_a_broker_with_tombstones_are_replayed_with_retention_asked_first(
    kafka: Broker, topic: str, warehouse: Warehouse
) -> None:
    def sent(shard: int, came: datetime, key: int, event: Any) -> tuple[int, int, str, Any]:
        return shard, ms(came), json.dumps(with_schema({"id": key})), event

    kafka.send(
        topic,
        [
            sent(0, at(1, 0), 9, with_schema(change("r", 1, after=row(9, at(1))))),
            sent(0, at(3), 1, with_schema(change("c", 10, after=row(1, at(3))))),
            sent(0, at(3), 2, with_schema(change("c", 11, after=row(2, at(3))))),
            sent(1, at(4), 3, with_schema(change("c", 12, after=row(3, at(4))))),
            sent(0, at(7), 1, with_schema(change("d", 13))),
            sent(0, at(7), 1, None),
            sent(1, at(8), 3, with_schema(change("u", 14, after=row(3, at(3), "3.50")))),
        ],
    )
    source = KafkaEvents(kafka.servers, topic, complete_since=at(1) - timedelta(days=2))
    warehouse.run_range("2026-05-03", "2026-05-04", asset_of(source))
    once = [("2026-05-03", 2, "1.00"), ("2026-05-03", 3, "3.50")]
    assert warehouse.rows(ALL) == once
    kafka.age_out(topic, 0, 2)
    said = failure_of(warehouse.run(asset_of(source), partition_key="2026-05-03", ok=False))
    assert "partition 0 begins at 2026-05-0" in said
    assert warehouse.rows(ALL) == once


def test_changes_are_read_to_the_end_of_what_there_is() -> None:
    assert EVENTS.late is None
    assert EVENTS.early == timedelta(hours=1)
