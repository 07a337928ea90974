"""What is declared of events and where they are: mistakes are told at once, and nothing is read on a guess."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import dagster as dg
import pandas as pd
import pyarrow as pa
import pytest

from backfill_assets.errors import DeclarationError
from backfill_assets.strategies.replay import Debezium, Events, Field, Json, KafkaEvents
from backfill_assets.strategies.replay.kafka import _since
from backfill_assets.strategies.replay.replaying import Replay
from backfill_assets.table import SliceColumn, Table
from backfill_assets_tests.io_managers.conftest import Warehouse, failure_of
from backfill_assets_tests.kafka_broker import Broker
from backfill_assets_tests.strategies.replay.conftest import at, ms, order, sent
from backfill_assets_tests.strategies.replay.test_kafka import ALL, EVENTS, a_week, asset_of

ONE_TIME = {"at": "TIMESTAMPTZ", "id": "BIGINT"}


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"fields": {**ONE_TIME, "rowid": "BIGINT"}}, "that name is taken"),
        ({"fields": {**ONE_TIME, "__slice": "BIGINT"}}, "that name is taken"),
        ({"fields": {**ONE_TIME, "ID": "BIGINT"}}, "that name is taken"),
        ({"fields": {"at": "VARCHAR", "id": "BIGINT"}}, "it is VARCHAR"),
        ({"fields": {"at": "MONEY", "id": "BIGINT"}}, "there is no such type"),
        ({"key": ()}, "could not be told from new ones"),
        ({"key": ("ids",)}, "there is no such field"),
        ({"late": timedelta(-1)}, "it is no length of time"),
        ({"poison": "ignore"}, "there is no such policy"),
        ({"ordering": ("id",), "decode": Json("delete", within="table")}, "a tombstone has no field"),
    ],
)  # fmt: skip
def test_a_mistake_in_a_declaration_is_told_when_it_is_made(
    options: dict[str, Any], why: str
) -> None:
    with pytest.raises(DeclarationError, match=why):
        Events(**{"fields": ONE_TIME, "time": "at", "key": ("id",)} | options)


def test_changes_are_read_to_the_end_of_what_there_is() -> None:
    assert Events(ONE_TIME, time="at", key=("id",), decode=Json(within="table")).late is None
    assert Events(ONE_TIME, time="at", key=("id",), decode=Debezium()).late is None
    assert Events(ONE_TIME, time="at", key=("id",)).late == timedelta(hours=1)
    assert Debezium(order="source.pos").order == ("source.pos",)  # pyright: ignore[reportArgumentType] - as people write it


@pytest.mark.parametrize("options", [{"readers": 0}, {"memory_mb": 1}])
def test_a_replay_that_could_read_nothing_is_refused(options: dict[str, int]) -> None:
    with pytest.raises(DeclarationError, match="it could read nothing"):
        Replay(KafkaEvents("nowhere", "t"), EVENTS, **options)


@pytest.mark.parametrize(
    "name", ["auto.offset.reset", "isolation.level", "group.id", "default.topic.config"]
)
def test_what_keeps_others_undisturbed_cannot_be_configured_away(name: str) -> None:
    with pytest.raises(DeclarationError, match=f"cannot be declared with {name}"):
        KafkaEvents("nowhere", "t", {name: "earliest"})


def test_a_secret_that_is_not_set_is_named_and_a_wrong_setting_is_told(
    kafka: Broker, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("NO_SUCH_PASSWORD", raising=False)
    unset = KafkaEvents(kafka.servers, topic, {"sasl.password": dg.EnvVar("NO_SUCH_PASSWORD")})
    with (
        pytest.raises(
            DeclarationError,
            match="sasl.password of topic .* is not known: the environment variable NO_SUCH_PASSWORD is not set",
        ),
        unset.open("t"),
    ):
        pass
    wrong = KafkaEvents(kafka.servers, topic, {"no.such.setting": "1"})
    with pytest.raises(DeclarationError, match="does not take its settings"), wrong.open("t"):
        pass


@pytest.mark.parametrize(
    ("head", "behind", "since"),
    [
        ([], [0, 60, 120, 180, 240, 300, 360], 0),
        ([-9 * 86_400], [0, 60, 120, 180, 240, 300, 360], 0),
        ([-9 * 86_400 + n for n in range(12)], [n * 60 for n in range(30)], 0),
        ([], [n * 43_200 for n in range(10)], 0),
        ([60, 30], [0, 60, 120, 180, 240, 300, 360], 0),
    ],
    ids=["in order", "one late", "twelve late", "two a day", "a little out of order"],
)
def test_events_that_were_late_themselves_do_not_say_since_when_a_topic_is_whole(
    head: list[int], behind: list[int], since: int
) -> None:
    start = ms(at(3))
    times = [start + second * 1000 for second in [*head, *behind]]
    assert _since(times, timedelta(0)) == at(3) + timedelta(seconds=since)


def test_a_topic_that_was_made_anew_is_not_taken_for_the_whole_stream(
    kafka: Broker, topic: str, warehouse: Warehouse
) -> None:
    kafka.send(topic, [sent(n, at(3, 12 + n)) for n in range(6)])
    said = failure_of(
        warehouse.run(asset_of(kafka, topic, complete_since=None), partition_key="2026-05-03", ok=False)
    )  # fmt: skip
    assert "begins at 2026-05-03T12:00:00+00:00" in said
    warehouse.run(asset_of(kafka, topic, complete_since=at(3, 0) - timedelta(hours=1)), partition_key="2026-05-03")  # fmt: skip
    assert len(warehouse.rows(ALL)) == 6


def test_an_event_without_what_orders_it_is_no_last_one(
    kafka: Broker, topic: str, warehouse: Warehouse
) -> None:
    events = Events({**EVENTS.fields, "version": "INTEGER"}, time="ordered_at", key=("order_id",), ordering=("version",))  # fmt: skip
    kafka.send(topic, [sent(1, at(3), version=1), sent(1, at(3), "2.00")])
    said = failure_of(warehouse.run(asset_of(kafka, topic, events), partition_key="2026-05-03", ok=False))  # fmt: skip
    assert "it has no version, which orders it" in said


def test_two_last_events_in_two_shards_that_differ_are_refused_though_an_order_is_declared(
    kafka: Broker, topic: str, warehouse: Warehouse
) -> None:
    events = Events({**EVENTS.fields, "version": "INTEGER"}, time="ordered_at", key=("order_id",), ordering=("version",))  # fmt: skip
    kafka.send(topic, [sent(1, at(3), "1.00", shard=0, version=2), sent(1, at(3), "2.00", shard=1, version=2)])  # fmt: skip
    kafka.send(topic, [sent(2, at(3), "1.00", shard=n, version=2) for n in (0, 1)])
    said = failure_of(warehouse.run(asset_of(kafka, topic, events), partition_key="2026-05-03", ok=False))  # fmt: skip
    assert "nobody can tell which is the last: 1." in said


def test_a_decoder_of_ones_own_rounds_nothing(
    kafka: Broker, topic: str, warehouse: Warehouse
) -> None:
    def decode(batch: pa.Table) -> pa.Table:
        found = [v.decode().split(";") for v in batch["value"].to_pylist()]
        ids, times, amounts = zip(*found, strict=True)
        return pa.table({"order_id": list(map(float, ids)), "ordered_at": times, "amount": amounts})

    fields = {**EVENTS.fields, "ordered_at": Field("TIMESTAMPTZ", unit="ms")}
    events = Events(fields, time="ordered_at", key=("order_id",), decode=decode)
    moment = ms(at(3))
    good = (0, moment, "a", f"1;{moment};1.25".encode())
    kafka.send(topic, [good])
    warehouse.run(asset_of(kafka, topic, events), partition_key="2026-05-03")
    assert warehouse.rows(ALL) == [("2026-05-03", 1, "1.25")]
    for body, why in ((f"1.5;{moment};1", "order_id holds 1.5"), (f"2;{moment};1.005", "amount holds 1.005")):  # fmt: skip
        kafka.send(topic, [(1, moment, "b", body.encode())])
        said = failure_of(warehouse.run(asset_of(kafka, topic, events), partition_key="2026-05-03", ok=False))  # fmt: skip
        assert why in said
        kafka.age_out(topic, 1, kafka.end(topic, 1))
        topic = kafka.topic(f"{topic}x")


def test_pandas_keeps_every_digit_of_a_large_number_beside_a_missing_one(
    kafka: Broker, topic: str, warehouse: Warehouse
) -> None:
    def rows(frame: pd.DataFrame) -> pd.DataFrame:
        return frame.assign(order_date=frame["ordered_at"].dt.date).drop(columns=["ordered_at"])

    fields = {**EVENTS.fields, "customer": "BIGINT"}
    events = Events(fields, time="ordered_at", key=("order_id",))
    kafka.send(topic, [sent(1, at(3), customer=9007199254740993), sent(2, at(3))])
    warehouse.run(asset_of(kafka, topic, events, transform=rows), partition_key="2026-05-03")
    found = warehouse.rows("SELECT customer FROM analytics.fct_orders ORDER BY order_id")
    assert found == [(9007199254740993,), (None,)]


@pytest.mark.parametrize(
    ("options", "deleted", "what"),
    [({"transform": "SELECT no_such FROM events"}, None, "transform"), ({}, "op = 'x'", "deleted")],
)
def test_sql_that_does_not_fit_the_fields_is_told_before_anything_is_read(
    kafka: Broker, topic: str, warehouse: Warehouse, options: dict[str, str], deleted: str | None, what: str
) -> None:  # fmt: skip
    kafka.send(topic, a_week())
    events = Events(EVENTS.fields, time="ordered_at", key=("order_id",), deleted=deleted)
    said = failure_of(warehouse.run(asset_of(kafka, topic, events, **options), partition_key="2026-05-03", ok=False))  # fmt: skip
    assert f"the SQL of {what} does not fit the events' fields" in said


def test_what_is_behind_the_window_by_no_more_than_the_disorder_is_read(
    kafka: Broker, topic: str, warehouse: Warehouse
) -> None:
    behind = [sent(10_000 + n, at(5, n / 1000), shard=0) for n in range(3_000)]
    kafka.send(topic, [*a_week(), *behind, sent(333, at(3, 1), shard=0)])
    asset = asset_of(kafka, topic, disorder=timedelta(days=5))
    warehouse.run(asset, partition_key="2026-05-03")
    assert (333,) in warehouse.rows("SELECT order_id FROM analytics.fct_orders")


def test_large_events_are_read_few_at_a_time(
    kafka: Broker, topic: str, warehouse: Warehouse
) -> None:
    body = "x" * 400_000
    kafka.send(topic, [(0, ms(at(3)), str(n), order(n, at(3), note=body)) for n in range(60)])
    with KafkaEvents(kafka.servers, topic).open("t") as reading:
        sizes = [b.nbytes for b in reading.read(reading.shards[0], at(3, 0), at(4, 0))]
    assert sum(sizes) > 60 * len(body)
    assert max(sizes[1:]) < 20 * 2**20


@pytest.mark.parametrize("kind", ["TIMESTAMP", "TIMESTAMPTZ"])
def test_the_days_of_berlin_on_which_clocks_change_hold_their_own_orders(
    kafka: Broker, topic: str, warehouse: Warehouse, kind: str
) -> None:
    zone = ZoneInfo("Europe/Berlin")
    moments = [datetime(2026, 3, day, hour, tzinfo=zone) for day in (28, 29, 30) for hour in (0, 4, 23)]  # fmt: skip
    moments += [datetime(2026, 10, day, hour, tzinfo=zone) for day in (24, 25, 26) for hour in (0, 4, 23)]  # fmt: skip
    said = [m if kind == "TIMESTAMPTZ" else m.replace(tzinfo=None) for m in moments]
    fields = {**EVENTS.fields, "ordered_at": kind}
    events = Events(fields, time="ordered_at", key=("order_id",))
    body = [order(n, m) for n, m in enumerate(said)]
    kafka.send(topic, [(n % 3, ms(m), str(n), body[n]) for n, m in enumerate(moments)])
    table = Table("analytics.fct_orders", SliceColumn("order_date", "date", zone="Europe/Berlin"), unique_key=("order_id",))  # fmt: skip
    local = "ordered_at" if kind == "TIMESTAMP" else "ordered_at AT TIME ZONE 'Europe/Berlin'"
    asset = asset_of(
        kafka, topic, events, table=table, complete_since=at(1) - timedelta(days=90),
        partitions_def=dg.DailyPartitionsDefinition("2026-03-28", timezone="Europe/Berlin"),
        transform=f"SELECT CAST({local} AS DATE) AS order_date, order_id, amount FROM events",
    )  # fmt: skip
    for first, last in (("2026-03-28", "2026-03-30"), ("2026-10-24", "2026-10-26")):
        warehouse.run_range(first, last, asset)
    found = warehouse.rows("SELECT order_date, order_id FROM analytics.fct_orders ORDER BY 2")
    assert found == [(m.date(), n) for n, m in enumerate(moments)]
