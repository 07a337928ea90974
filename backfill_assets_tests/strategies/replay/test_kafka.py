"""A week of a topic read again: every order once, on its day, and neither the broker nor its live readers notice."""

from __future__ import annotations

import json
import threading
import uuid
from datetime import datetime, timedelta, timezone
from typing import Any

import dagster as dg
import pytest
from confluent_kafka import Consumer

from backfill_assets.operations.partition_checks import partition_checks
from backfill_assets.strategies.replay import Events, KafkaEvents, replay_asset
from backfill_assets_tests.io_managers.conftest import Warehouse, failure_of
from backfill_assets_tests.kafka_broker import Broker
from backfill_assets_tests.strategies.replay.conftest import (
    ALL,
    DAYS,
    EVENTS,
    ORDERS,
    at,
    ms,
    order,
    orders_from,
    sent,
)


def asset_of(kafka: Broker, topic: str, events: Events = EVENTS, **options: Any):
    options.setdefault("complete_since", at(1) - timedelta(days=2))
    source = KafkaEvents(
        kafka.servers, topic, **{k: options.pop(k) for k in ("live_group", "disorder", "complete_since", "compacted") if k in options}
    )  # fmt: skip
    return orders_from(source, events, **options)


def a_week(orders_a_day: int = 6) -> list[tuple[int, int, Any, Any]]:
    """Return orders of 1 to 7 May, numbered on, at even hours of their day."""
    return [
        sent(day * 100 + n, at(day, n * 24 / orders_a_day), f"{day}.{n:02}")
        for day in range(1, 8)
        for n in range(orders_a_day)
    ]


def test_each_order_lies_on_its_day_once_however_often_it_is_replayed(
    kafka: Broker, topic: str, warehouse: Warehouse
) -> None:
    kafka.send(topic, a_week())
    asset = asset_of(kafka, topic)
    warehouse.run_range("2026-05-02", "2026-05-04", asset)
    once = warehouse.rows(ALL)
    assert once == [
        (f"2026-05-{day:02}", day * 100 + n, f"{day}.{n:02}") for day in (2, 3, 4) for n in range(6)
    ]
    warehouse.run(asset, partition_key="2026-05-03")
    warehouse.run_range("2026-05-03", "2026-05-04", asset)
    warehouse.run_range("2026-05-02", "2026-05-03", asset)
    assert warehouse.rows(ALL) == once


def test_the_audit_says_that_it_was_a_replay_and_of_which_offsets(
    kafka: Broker, topic: str, warehouse: Warehouse
) -> None:
    kafka.send(topic, a_week())
    warehouse.run(asset_of(kafka, topic), partition_key="2026-05-03")
    ((strategy, detail),) = warehouse.rows("SELECT strategy, detail FROM backfill.load_audit")
    assert strategy == "replay"
    told = json.loads(detail)["source"]
    assert told["source"] == f"topic {topic}"
    assert told["events"] == 6
    assert set(told["offsets"]) == {"0", "1", "2"}
    assert all(int(first) < int(end) for first, end in told["offsets"].values())


def test_a_window_that_the_broker_has_aged_out_is_refused_before_anything_is_deleted(
    kafka: Broker, topic: str, warehouse: Warehouse
) -> None:
    kafka.send(topic, a_week())
    asset = asset_of(kafka, topic)
    warehouse.run_range("2026-05-01", "2026-05-07", asset)
    before = warehouse.rows(ALL)
    kafka.age_out(topic, 1, 5)  # the first two days and a half of one partition
    said = failure_of(warehouse.run_range("2026-05-01", "2026-05-07", asset, ok=False))
    assert f"topic {topic} no longer holds all their events" in said
    assert "partition 1 begins at 2026-05-03" in said
    assert "The first whole one that can be replayed is 2026-05-04" in said
    assert warehouse.rows(ALL) == before
    said = failure_of(warehouse.run(asset, partition_key="2026-05-02", ok=False))
    assert "analytics.fct_orders 2026-05-02 was left as it was" in said
    warehouse.run_range("2026-05-04", "2026-05-07", asset)
    assert warehouse.rows(ALL) == before


def test_what_is_whole_is_filled_where_a_run_allows_it_with_a_reason(
    kafka: Broker, topic: str, warehouse: Warehouse
) -> None:
    kafka.send(topic, a_week())
    asset = asset_of(kafka, topic)
    kafka.age_out(topic, 1, 5)
    tags = {"allow": "partial", "reason": "the rest comes from the archive"}
    failed = warehouse.run_range("2026-05-02", "2026-05-07", asset, ok=False, tags=tags)
    assert "2026-05-02" in failure_of(failed)
    filled = {day for day, *_ in warehouse.rows(ALL)}
    assert filled == {f"2026-05-{day:02}" for day in (4, 5, 6, 7)}
    key = dg.AssetKey(["analytics", "fct_orders"])
    assert warehouse.instance.get_materialized_partitions(key) == filled


def test_a_topic_with_nothing_left_is_not_taken_for_days_without_orders(
    kafka: Broker, topic: str, warehouse: Warehouse
) -> None:
    kafka.send(topic, a_week())
    asset = asset_of(kafka, topic)
    warehouse.run_range("2026-05-01", "2026-05-07", asset)
    before = warehouse.rows(ALL)
    for shard in range(3):
        kafka.age_out(topic, shard, kafka.end(topic, shard))
    said = failure_of(warehouse.run(asset, partition_key="2026-05-07", ok=False))
    assert "has nothing left" in said
    assert warehouse.rows(ALL) == before


def test_an_order_that_came_late_and_one_that_came_early_lie_on_their_own_day(
    kafka: Broker, topic: str, warehouse: Warehouse
) -> None:
    kafka.send(
        topic,
        [
            *a_week(),
            sent(901, at(3, 23.99), written=at(4, 0.5)),
            sent(902, at(4, 0), written=at(3, 23.5)),
            sent(903, at(4, 23.9999), written=at(5, 0.9)),
        ],
    )
    warehouse.run(asset_of(kafka, topic), partition_key="2026-05-04")
    found = warehouse.rows("SELECT order_id FROM analytics.fct_orders WHERE order_id > 900 ORDER BY 1")  # fmt: skip
    assert found == [(902,), (903,)]
    ((detail,),) = warehouse.rows("SELECT detail FROM backfill.load_audit")
    assert json.loads(detail)["source"]["events_outside"] > 0


def test_one_event_with_a_time_of_the_far_future_does_not_end_the_reading(
    kafka: Broker, topic: str, warehouse: Warehouse
) -> None:
    future = at(1) + timedelta(days=20_000)
    kafka.send(topic, [sent(999, future, shard=shard) for shard in range(3)])
    kafka.send(topic, a_week())
    warehouse.run(asset_of(kafka, topic), partition_key="2026-05-03")
    assert [number for _, number, _ in warehouse.rows(ALL)] == [300 + n for n in range(6)]


def test_the_last_event_of_an_order_counts_and_a_deletion_deletes(
    kafka: Broker, topic: str, warehouse: Warehouse
) -> None:
    fields = {**EVENTS.fields, "version": "INTEGER", "op": "VARCHAR"}
    events = Events(fields, time="ordered_at", key=("order_id",), ordering=("version",), deleted="op = 'gone'")  # fmt: skip
    say = lambda n, amount, version, op="set", shard=0: sent(n, at(3), amount, shard=shard, version=version, op=op)  # noqa: E731  # fmt: skip
    kafka.send(
        topic,
        [
            say(1, "1.00", 1),
            say(1, "3.00", 3, shard=1),
            say(1, "2.00", 2, shard=2),
            say(1, "3.00", 3, shard=1),
            say(2, "5.00", 1),
            say(2, "5.00", 2, "gone"),
            say(3, "7.00", 2, "gone"),
            say(3, "8.00", 3),
        ],
    )
    warehouse.run(asset_of(kafka, topic, events), partition_key="2026-05-03")
    assert warehouse.rows(ALL) == [("2026-05-03", 1, "3.00"), ("2026-05-03", 3, "8.00")]


def test_a_key_in_two_partitions_is_refused_where_nothing_tells_which_event_is_the_last(
    kafka: Broker, topic: str, warehouse: Warehouse
) -> None:
    kafka.send(topic, [sent(1, at(3), "1.00", shard=0), sent(1, at(3, 13), "2.00", shard=1)])
    said = failure_of(warehouse.run(asset_of(kafka, topic), partition_key="2026-05-03", ok=False))
    assert "nobody can tell which is the last: 1" in said
    assert "Declare the ordering" in said


def test_aborted_transactions_are_never_seen(
    kafka: Broker, topic: str, warehouse: Warehouse
) -> None:
    kafka.send(topic, a_week())
    producer = kafka.producer(**{"transactional.id": topic})
    producer.init_transactions(20)
    for number, end in ((801, producer.commit_transaction), (802, producer.abort_transaction)):
        producer.begin_transaction()
        producer.produce(topic, json.dumps(order(number, at(3, 5))), key=str(number), partition=0, timestamp=ms(at(3, 5)))  # fmt: skip
        end(20)
    warehouse.run(asset_of(kafka, topic), partition_key="2026-05-03")
    found = warehouse.rows("SELECT order_id FROM analytics.fct_orders WHERE order_id > 800")
    assert found == [(801,)]


def test_two_live_consumers_keep_their_offsets_and_no_group_is_left(
    kafka: Broker, topic: str, warehouse: Warehouse
) -> None:
    kafka.send(topic, a_week())
    live, stop, seen = f"live-{topic}", threading.Event(), list[str]()

    def consume() -> None:
        consumer = Consumer({"bootstrap.servers": kafka.servers, "group.id": live, "auto.offset.reset": "earliest", "log_level": 0})  # fmt: skip
        consumer.subscribe([topic])
        while not stop.is_set():
            message = consumer.poll(0.2)
            if message is not None and message.error() is None:
                seen.append(message.key().decode())
                consumer.commit(message, asynchronous=False)
        consumer.close()

    consumers = [threading.Thread(target=consume) for _ in range(2)]
    for consumer in consumers:
        consumer.start()
    try:
        _until(lambda: len(seen) == 42)
        before = kafka.committed(topic, live)
        warehouse.run_range("2026-05-01", "2026-05-07", asset_of(kafka, topic, live_group=live))
        assert kafka.committed(topic, live) == before
        kafka.send(topic, [sent(777, at(8))])
        _until(lambda: len(seen) == 43)
    finally:
        stop.set()
        for consumer in consumers:
            consumer.join()
    assert seen[-1] == "777"
    assert len(warehouse.rows(ALL)) == 42
    assert not [group for group in kafka.groups() if group.startswith("backfill-")]
    ((detail,),) = warehouse.rows("SELECT detail FROM backfill.load_audit WHERE partition_key = '2026-05-03'")  # fmt: skip
    told = json.loads(detail)["source"]
    assert told["live_offsets_before"] == told["live_offsets_after"] == {str(k): v for k, v in before.items()}  # fmt: skip
    assert set(told["live_lag"].values()) == {0}


def _until(true: Any) -> None:
    import time

    limit = time.monotonic() + 60
    while not true():
        assert time.monotonic() < limit
        time.sleep(0.05)


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (b"\xff\xfe", "it is not UTF-8 text"),
        (b'{"order_id": 1', "it is no JSON"),
        (None, "it has no value"),
        ({"ordered_at": at(3).isoformat(), "amount": 1}, "it has no order_id, which is of its key"),
        ({"order_id": 1, "amount": 1}, "it has no ordered_at, which is its time"),
        (order(1, at(3)) | {"order_id": "one"}, "field order_id holds one, which is no BIGINT"),
        (order(1, at(3)) | {"order_id": 1.5}, "field order_id holds 1.5, which is no BIGINT"),
        (order(1, at(3)) | {"amount": "1.005"}, "field amount holds 1.005, which is no DECIMAL(18, 2)"),
        (order(1, at(3)) | {"ordered_at": "2026-05-03T12:00:00"}, "field ordered_at holds 2026-05-03T12:00:00, which is no TIMESTAMPTZ"),
    ],
)  # fmt: skip
def test_an_event_that_cannot_be_read_stops_the_run_and_is_named(
    kafka: Broker, topic: str, warehouse: Warehouse, body: Any, why: str
) -> None:
    kafka.send(topic, [*a_week(), (1, ms(at(3)), "k", body)])
    said = failure_of(warehouse.run(asset_of(kafka, topic), partition_key="2026-05-03", ok=False))
    assert "1 events of topic" in said
    assert f"partition 1 offset 14: {why}" in said
    warehouse.execute("CREATE TABLE nothing (a INTEGER)")
    assert warehouse.rows("SELECT count(*) FROM information_schema.tables WHERE table_name = 'fct_orders'") == [(0,)]  # fmt: skip


def test_poison_is_put_aside_once_and_the_rest_is_replayed(
    kafka: Broker, topic: str, warehouse: Warehouse
) -> None:
    events = Events(EVENTS.fields, time="ordered_at", key=("order_id",), poison="quarantine")
    kafka.send(topic, [*a_week(), (1, ms(at(3)), "k", b"\xff\xfe"), (2, ms(at(3)), "k", b"{}")])
    asset = asset_of(kafka, topic, events)
    for _ in range(2):
        warehouse.run(asset, partition_key="2026-05-03")
    assert len(warehouse.rows(ALL)) == 6
    found = warehouse.rows(
        "SELECT table_name, topic, shard, position, reason, raw_base64 FROM backfill.replay_quarantine ORDER BY shard"
    )
    assert found == [
        ("analytics.fct_orders", f"topic {topic}", "1", "14", "it is not UTF-8 text", "//4="),
        ("analytics.fct_orders", f"topic {topic}", "2", "14", "it has no order_id, which is of its key", "e30="),
    ]  # fmt: skip


def test_the_checks_of_a_partition_say_how_many_events_were_put_aside(
    kafka: Broker, topic: str, warehouse: Warehouse
) -> None:
    events = Events(EVENTS.fields, time="ordered_at", key=("order_id",), poison="quarantine")
    kafka.send(topic, [*a_week(), (1, ms(at(3)), "k", b"{}")])
    asset = asset_of(kafka, topic, events)
    result = warehouse.run(asset, partition_checks(asset), partition_key="2026-05-03")  # pyright: ignore[reportArgumentType] - a check is an asset to Dagster
    found = {e.check_name: e for e in result.get_asset_check_evaluations()}
    assert not found["poison_events"].passed
    assert found["poison_events"].severity == dg.AssetCheckSeverity.WARN
    assert "1 events of the run" in str(found["poison_events"].description)
    assert all(check.passed for name, check in found.items() if name != "poison_events")


def test_a_long_amount_keeps_every_digit(kafka: Broker, topic: str, warehouse: Warehouse) -> None:
    fields = {**EVENTS.fields, "amount": "DECIMAL(38, 9)"}
    events = Events(fields, time="ordered_at", key=("order_id",))
    body = b'{"order_id": 1, "ordered_at": "2026-05-03T01:00:00Z", "amount": 12345678901234567.890123456}'
    kafka.send(topic, [(0, ms(at(3)), "1", body)])
    warehouse.run(asset_of(kafka, topic, events), partition_key="2026-05-03")
    assert warehouse.rows(ALL) == [("2026-05-03", 1, "12345678901234567.890123456")]


def test_a_topic_that_is_not_there_and_a_broker_that_does_not_answer_are_told(
    kafka: Broker, warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("backfill_assets.strategies.replay.kafka._SECONDS", 2.0)
    missing = asset_of(kafka, "no-such-topic")
    said = failure_of(warehouse.run(missing, partition_key="2026-05-03", ok=False))
    assert "there is no such topic at" in said
    away = replay_asset(["analytics", "fct_orders"], source=KafkaEvents("127.0.0.1:1", "orders"), events=EVENTS, table=ORDERS, partitions_def=DAYS)  # fmt: skip
    said = failure_of(warehouse.run(away, partition_key="2026-05-03", ok=False))
    assert "the broker at 127.0.0.1:1 did not let us look at topic orders" in said


def test_a_day_that_is_not_over_is_refused(kafka: Broker, topic: str, warehouse: Warehouse) -> None:
    kafka.send(topic, a_week())
    today = datetime.now(timezone.utc).date().isoformat()
    days = dg.DailyPartitionsDefinition("2026-05-01", end_offset=1)
    asset = asset_of(kafka, topic, partitions_def=days)
    said = failure_of(warehouse.run(asset, partition_key=today, ok=False))
    assert f"{today} ends only at" in said
    assert "its events have not all come" in said


def test_a_compacted_topic_is_refused_where_each_slice_needs_its_own_events(
    kafka: Broker, warehouse: Warehouse
) -> None:
    topic = kafka.topic(f"compacted-{uuid.uuid4().hex[:8]}", **{"cleanup.policy": "compact"})
    kafka.send(topic, a_week())
    said = failure_of(warehouse.run(asset_of(kafka, topic), partition_key="2026-05-03", ok=False))
    assert "is compacted: it drops events of a key that came again" in said
