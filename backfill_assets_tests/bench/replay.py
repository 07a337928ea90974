"""A million JSON events of a topic into ten days of DuckDB, against the loop that one would write first."""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from functools import partial
from pathlib import Path
from typing import Any

from backfill_assets_tests.bench.timing import Ratio

EVENTS, FEWER, DAYS, SHARDS, PAIRS = 1_000_000, 100_000, 10, 3, 3
FIRST = datetime(2026, 5, 1, tzinfo=timezone.utc)
TOPIC, FEW = "orders", "few-orders"
MEMORY_MB = 512


def measure(folder: Path) -> Iterator[Ratio]:
    """Yield ratios of the times of processes of their own, and that of our peak memory to what it may be.

    Row by row a million rows would take DuckDB many minutes, so that loop is measured on fewer events.
    """
    from backfill_assets_tests.kafka_broker import broker

    with broker() as kafka:
        for topic, count in ((FEW, FEWER), (TOPIC, EVENTS)):
            kafka.topic(topic, SHARDS)
            fill(kafka, topic, count)
        few = list(_pairs(kafka.servers, folder, FEW, "rows"))
        found = list(_pairs(kafka.servers, folder, TOPIC, "frames"))
    yield _ratio(f"replay of {FEWER:,} events into {DAYS} days against message by message, a list, executemany a day", few, 0.2)  # fmt: skip
    yield _ratio(f"replay of {EVENTS:,} events, likewise, against a pandas frame a day and no check", found, None)  # fmt: skip
    peak = max(ours["peak_mb"] for ours, _ in found)
    yield Ratio(f"its peak memory against {MEMORY_MB} MiB (MiB in place of ms)", peak, MEMORY_MB, peak / MEMORY_MB, 1.0)  # fmt: skip


def _pairs(
    servers: str, folder: Path, topic: str, loop: str
) -> Iterator[tuple[dict[str, float], dict[str, float]]]:
    for pair in range(PAIRS):
        ours, theirs = (
            in_a_process(how, servers, topic, folder / f"{topic}{how}{pair}.duckdb")
            for how in ("replay", loop)
        )
        yield ours, theirs


def _ratio(
    what: str, found: list[tuple[dict[str, float], dict[str, float]]], wanted: float | None
) -> Ratio:
    seconds = [(ours["seconds"], theirs["seconds"]) for ours, theirs in found]
    return Ratio(
        what,
        statistics.median(a for a, _ in seconds) * 1000,
        statistics.median(b for _, b in seconds) * 1000,
        statistics.median(a / b for a, b in seconds),
        wanted,
    )


def fill(kafka: Any, topic: str, count: int) -> None:
    """Send `count` orders of ten days, a quarter of an hour out of order."""
    producer = kafka.producer(**{"queue.buffering.max.messages": 1_000_000})
    step = timedelta(days=DAYS) / count
    for n in range(count):
        moment = FIRST + step * n + timedelta(seconds=n * 7919 % 900)
        event = {
            "order_id": n,
            "ordered_at": moment.isoformat(),
            "customer_id": n % 1000,
            "product": f"product {n % 77}",
            "quantity": n % 9 + 1,
            "price": f"{n % 1000}.25",
        }
        at = round(moment.timestamp() * 1000)
        while True:
            try:
                producer.produce(topic, json.dumps(event), str(n), n % SHARDS, timestamp=at)
                break
            except BufferError:
                producer.poll(0.1)
    producer.flush(120)


def in_a_process(how: str, servers: str, topic: str, file: Path) -> dict[str, float]:
    done = subprocess.run(
        [sys.executable, "-m", __name__, how, servers, topic, str(file)],
        check=True, capture_output=True, text=True,
    )  # fmt: skip
    return json.loads(done.stdout.splitlines()[-1])


def replay(servers: str, topic: str, file: str) -> float:
    """Replay ten days in one pass, and return the seconds from the first question to the last commit."""
    import dagster  # noqa: F401 - a run has it in memory

    from backfill_assets.engines import open_engine
    from backfill_assets.io_managers.sessions import Sessions
    from backfill_assets.slice import Slice
    from backfill_assets.strategies.replay import Events, KafkaEvents
    from backfill_assets.strategies.replay.replaying import Replay
    from backfill_assets.table import SliceColumn, Table
    from backfill_assets.window import Window
    from backfill_assets.writing import AuditTable, Run, rewrite

    table = Table("orders", SliceColumn("order_date", "date"), unique_key=("order_id",))
    days = [FIRST + timedelta(days=n) for n in range(DAYS)]
    slices = [Slice(table, Window(d, d + timedelta(days=1)), partition=d.date().isoformat()) for d in days]  # fmt: skip
    events = Events(
        {
            "order_id": "BIGINT",
            "ordered_at": "TIMESTAMPTZ",
            "customer_id": "BIGINT",
            "product": "VARCHAR",
            "quantity": "INTEGER",
            "price": "DECIMAL(18, 2)",
        },
        time="ordered_at",
        key=("order_id",),
    )
    to_rows = "SELECT CAST(ordered_at AS DATE) AS order_date, order_id, customer_id, product, quantity, price FROM events"
    # this broker sends all that is left of a partition at once, whatever a client asks for: one of them at a time
    replay = Replay(
        KafkaEvents(servers, topic, complete_since=FIRST - timedelta(days=2)),
        events,
        to_rows,
        readers=1,
    )
    run = Run("bench", strategy="replay")
    began = time.monotonic()
    with Sessions(open_engine(f"duckdb:///{file}"), "bench", lambda _: None) as sessions:
        with replay.opened(slices, run, sessions, lambda _: None) as opened:
            for slice_ in opened.slices:
                rewrite(sessions.get(), slice_, opened.compute(slice_).rows, run, AuditTable())
    return time.monotonic() - began


def loop(servers: str, topic: str, file: str, *, frames: bool) -> float:
    """Read message by message into a list and insert day by day, as one would write it first; return the seconds."""
    import duckdb
    import pandas as pd
    from confluent_kafka import Consumer, TopicPartition

    began = time.monotonic()
    consumer = Consumer({"bootstrap.servers": servers, "group.id": "loop", "auto.offset.reset": "earliest", "enable.auto.commit": False, "receive.message.max.bytes": 1_000_000_000})  # fmt: skip
    consumer.assign([TopicPartition(topic, n, 0) for n in range(SHARDS)])
    rows: list[dict[str, object]] = []
    total = {TOPIC: EVENTS, FEW: FEWER}[topic]
    while len(rows) < total:
        message = consumer.poll(1.0)
        if message is not None and message.error() is None:
            rows.append(json.loads(message.value()))
    consumer.close()
    connection = duckdb.connect(file)
    connection.execute("CREATE TABLE orders (order_date DATE, order_id BIGINT, customer_id BIGINT, product VARCHAR, quantity INTEGER, price DECIMAL(18, 2))")  # fmt: skip
    for n in range(DAYS + 1):
        day = (FIRST + timedelta(days=n)).date().isoformat()
        of_day = [r for r in rows if str(r["ordered_at"])[:10] == day]
        if not of_day:
            continue
        connection.execute(f"DELETE FROM orders WHERE order_date = '{day}'")
        if not frames:
            names = ("order_id", "customer_id", "product", "quantity", "price")
            connection.executemany("INSERT INTO orders VALUES (?, ?, ?, ?, ?, ?)", [[day, *(r[n] for n in names)] for r in of_day])  # fmt: skip
        else:
            connection.register("frame", pd.DataFrame([{"order_date": day, **r} for r in of_day]))
            connection.execute("INSERT INTO orders SELECT order_date, order_id, customer_id, product, quantity, price FROM frame")  # fmt: skip
    connection.close()
    return time.monotonic() - began


if __name__ == "__main__":
    what, *where = sys.argv[1:]
    seconds = {
        "replay": replay,
        "rows": partial(loop, frames=False),
        "frames": partial(loop, frames=True),
    }[what](*where)
    # not getrusage, which counts what the parent had before it became this process
    (peak,) = [int(line.split()[1]) / 1024 for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM")]  # fmt: skip
    print(json.dumps({"seconds": seconds, "peak_mb": peak}))
