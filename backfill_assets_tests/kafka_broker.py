"""A broker that speaks Kafka's protocol: topics, events with times of their own, and what retention leaves of them."""

from __future__ import annotations

import contextlib
import json
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewPartitions, NewTopic

from backfill_assets.demo.servers import free_port

_QUIET = {"log_level": 0}


class Broker:
    """One running broker. It keeps events for ever, since their times are those of the test and not of today."""

    def __init__(self, servers: str) -> None:
        self.servers = servers
        self.admin = AdminClient({"bootstrap.servers": servers, **_QUIET})

    def topic(self, name: str, partitions: int = 3, **config: str) -> str:
        """Make a topic and return its name."""
        kept = {"retention.ms": "-1", "retention.bytes": "-1", **config}
        self.admin.create_topics([NewTopic(name, partitions, 1, config=kept)])[name].result()
        return name

    def add_partition(self, topic: str, total: int) -> None:
        self.admin.create_partitions([NewPartitions(topic, total)])[topic].result()

    def producer(self, **config: Any) -> Producer:
        return Producer({"bootstrap.servers": self.servers, "linger.ms": 20, **_QUIET, **config})

    def send(self, topic: str, events: Sequence[tuple[int, int, Any, Any]]) -> None:
        """Send events as (partition, milliseconds, key, value); a value that is no text or bytes goes as JSON."""
        producer = self.producer()
        for partition, at, key, value in events:
            body = value if isinstance(value, (bytes, type(None))) else json.dumps(value)
            while True:
                try:
                    producer.produce(topic, value=body, key=key, partition=partition, timestamp=at)
                    break
                except BufferError:
                    producer.poll(0.1)
        assert producer.flush(60) == 0

    def age_out(self, topic: str, partition: int, before: int) -> None:
        """Remove the events before an offset, as retention does."""
        there = TopicPartition(topic, partition, before)
        self.admin.delete_records([there])[there].result()

    def end(self, topic: str, partition: int) -> int:
        with contextlib.closing(Consumer({"bootstrap.servers": self.servers, "group.id": "-", **_QUIET})) as c:  # fmt: skip
            return c.get_watermark_offsets(TopicPartition(topic, partition))[1]

    def groups(self) -> set[str]:
        return {g.group_id for g in self.admin.list_consumer_groups().result().valid}

    def committed(self, topic: str, group: str, partitions: int = 3) -> dict[int, int]:
        with contextlib.closing(Consumer({"bootstrap.servers": self.servers, "group.id": group, **_QUIET})) as c:  # fmt: skip
            found = c.committed([TopicPartition(topic, n) for n in range(partitions)], timeout=10)
            return {p.partition: p.offset for p in found}


@contextlib.contextmanager
def broker() -> Iterator[Broker]:
    """Start a broker on a free port of loopback, and stop it at the end."""
    import noida_db

    binary = Path(noida_db.__file__).parent / "noida-db"
    port, other = free_port(), free_port()
    with tempfile.TemporaryDirectory() as folder:
        process = subprocess.Popen(
            [binary, "start", "--data-dir", folder, "--only", "kafka,redis", "--kafka-port", str(port), "--redis-port", str(other)],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        try:
            started = Broker(f"127.0.0.1:{port}")
            _until_it_answers(started)
            yield started
        finally:
            process.terminate()
            process.wait(30)


def _until_it_answers(started: Broker) -> None:
    until = time.monotonic() + 60
    while True:
        try:
            started.admin.list_topics(timeout=2)
            return
        except KafkaException:
            assert time.monotonic() < until, "the broker did not answer for a minute"
            time.sleep(0.1)
