"""What happens to a topic while it is read: it is found out before anything is deleted."""

from __future__ import annotations

import contextlib
import json
import threading
from datetime import timedelta

import pytest
from confluent_kafka import Consumer, KafkaException, Producer

from backfill_assets.errors import Away, Refused
from backfill_assets.strategies.replay import KafkaEvents
from backfill_assets.strategies.replay.source import Reading
from backfill_assets_tests.io_managers.conftest import Warehouse
from backfill_assets_tests.kafka_broker import Broker
from backfill_assets_tests.strategies.replay.conftest import FIRST, at, ms, order, sent
from backfill_assets_tests.strategies.replay.test_kafka import a_week, asset_of


def read(reading: Reading, first: int, end: int) -> list[tuple[str, int]]:
    """Read days of May to their end, and return shard and offset of each event."""
    return [
        (shard.name, number)
        for shard in reading.shards
        for batch in reading.read(shard, at(first, 0), at(end, 0))
        for number in batch["ordinal"].to_pylist()
    ]


def test_events_that_come_after_the_opening_are_not_read(kafka: Broker, topic: str) -> None:
    kafka.send(topic, a_week())
    with KafkaEvents(kafka.servers, topic).open("t") as reading:
        kafka.send(topic, [sent(999, at(7, 23), shard=1)])
        found = read(reading, 1, 20)
        reading.must_be_whole()
    assert sorted(found) == [(str(shard), n) for shard in range(3) for n in range(14)]


def test_a_partition_that_is_added_meanwhile_is_found_out(kafka: Broker, topic: str) -> None:
    kafka.send(topic, a_week())
    with KafkaEvents(kafka.servers, topic).open("t") as reading:
        read(reading, 1, 8)
        kafka.add_partition(topic, 4)
        with pytest.raises(Away, match="it has 4 partitions now and had 3"):
            reading.must_be_whole()


def test_events_that_age_out_before_they_are_read_are_found_out(kafka: Broker, topic: str) -> None:
    kafka.send(topic, a_week())
    with KafkaEvents(kafka.servers, topic).open("t") as reading:
        kafka.age_out(topic, 2, 9)
        with pytest.raises(Refused, match="were removed by its retention|lost its events"):
            read(reading, 1, 8)
            reading.must_be_whole()


def test_events_that_age_out_behind_the_reader_are_found_out(kafka: Broker, topic: str) -> None:
    kafka.send(topic, a_week())
    with KafkaEvents(kafka.servers, topic).open("t") as reading:
        read(reading, 1, 8)
        kafka.age_out(topic, 2, 9)
        with pytest.raises(Refused, match="partition 2 lost its events before offset 9"):
            reading.must_be_whole()


def test_a_window_behind_the_last_event_is_empty_and_not_everything(
    kafka: Broker, topic: str
) -> None:
    kafka.send(topic, a_week())
    with KafkaEvents(kafka.servers, topic).open("t") as reading:
        assert read(reading, 20, 21) == []
        assert [reading.span(shard) for shard in reading.shards] == [None, None, None]


def an_open_transaction(kafka: Broker, topic: str) -> Producer:
    """Begin a transaction with one event, and send another one behind it."""
    producer = kafka.producer(**{"transactional.id": topic})
    producer.init_transactions(20)
    producer.begin_transaction()
    body = json.dumps(order(801, at(3)))
    producer.produce(topic, body, key="801", partition=0, timestamp=ms(at(3)))
    producer.flush(20)
    kafka.send(topic, [sent(802, at(7, 23), shard=0)])
    return producer


def test_what_an_open_transaction_hides_is_waited_for(kafka: Broker, topic: str) -> None:
    kafka.send(topic, a_week())
    producer = an_open_transaction(kafka, topic)
    with KafkaEvents(kafka.servers, topic).open("t") as reading:
        ending = threading.Timer(3, producer.commit_transaction, (20,))
        ending.start()
        found = read(reading, 1, 20)
        ending.join()
    assert [n for shard, n in found if shard == "0"] == list(range(16))


def test_a_transaction_that_stays_open_is_told_and_not_taken_for_the_end(
    kafka: Broker, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("backfill_assets.strategies.replay.kafka._SILENT", 3.0)
    kafka.send(topic, a_week())
    producer = an_open_transaction(kafka, topic)
    with KafkaEvents(kafka.servers, topic).open("t") as reading:
        with pytest.raises(Refused, match="still open hides what is behind offset 14 of 16"):
            read(reading, 1, 20)
    producer.abort_transaction(20)


@pytest.mark.slow
@pytest.mark.only("duckdb", why="a matter of reading")
def test_a_million_events_out_of_order_fill_ten_days_while_others_read_the_topic(
    kafka: Broker, topic: str, warehouse: Warehouse
) -> None:
    total, step = 1_000_000, timedelta(days=10) / 1_000_000
    producer = kafka.producer(**{"queue.buffering.max.messages": 2_000_000})
    for n in range(total):
        moment = FIRST + step * n + timedelta(seconds=n * 7919 % 900 - 450)
        moment = min(max(moment, FIRST), FIRST + timedelta(days=10, microseconds=-1))
        body = (
            f'{{"order_id": {n}, "ordered_at": "{moment.isoformat()}", "amount": "{n % 1000}.25"}}'
        )
        while True:
            try:
                producer.produce(topic, body, str(n), n % 3, timestamp=ms(moment))
                break
            except BufferError:
                producer.poll(0.1)
    assert producer.flush(120) == 0
    live, stop, seen = f"live-{topic}", threading.Event(), [0, 0]

    def consume(place: int) -> None:
        consumer = Consumer({"bootstrap.servers": kafka.servers, "group.id": live, "auto.offset.reset": "earliest", "receive.message.max.bytes": 1_000_000_000, "log_level": 0})  # fmt: skip
        consumer.subscribe([topic])
        while not stop.is_set():
            found = [m for m in consumer.consume(5000, 0.2) if m.error() is None]
            seen[place] += len(found)
            if found:
                with contextlib.suppress(
                    KafkaException
                ):  # its partitions went to the other one meanwhile
                    consumer.commit(asynchronous=False)
        consumer.close()

    consumers = [threading.Thread(target=consume, args=(place,)) for place in range(2)]
    for consumer in consumers:
        consumer.start()
    try:
        warehouse.run_range("2026-05-01", "2026-05-10", asset_of(kafka, topic, live_group=live))
        at_the_end = sum(seen)
    finally:
        stop.set()
        for consumer in consumers:
            consumer.join()
    # they read on all the while, each event once: what they committed is what they saw
    assert at_the_end > 0
    committed = kafka.committed(topic, live).values()
    assert sum(offset for offset in committed if offset > 0) == sum(seen)
    assert not [group for group in kafka.groups() if group.startswith("backfill-")]
    found = warehouse.rows(
        "SELECT count(*), count(DISTINCT order_id), sum(amount), count(DISTINCT order_date) FROM analytics.fct_orders"
    )
    assert [(a, b, float(c), d) for a, b, c, d in found] == [
        (total, total, sum(n % 1000 + 0.25 for n in range(total)), 10)
    ]
    loads = warehouse.rows("SELECT sum(rows_after), count(*) FROM backfill.load_audit")
    assert [tuple(map(int, row)) for row in loads] == [(total, 10)]
