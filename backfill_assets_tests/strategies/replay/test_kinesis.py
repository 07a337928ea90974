"""A week of a stream read again: every order once, across resharding, as far as retention goes, and no faster than its share."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

import dagster as dg
import pytest

from backfill_assets.errors import Away, DeclarationError, Refused
from backfill_assets.strategies.replay import Events, KinesisEvents
from backfill_assets_tests.io_managers.conftest import Warehouse, failure_of
from backfill_assets_tests.kinesis_server import REGION, SECRETS, Streams, streams, through
from backfill_assets_tests.strategies.replay.conftest import ALL, EVENTS, at, order, orders_from

NOW = at(8, 12)

pytestmark = pytest.mark.only("duckdb", why="what differs is the source, not the warehouse")


@pytest.fixture(scope="module")
def kinesis() -> Iterator[Streams]:
    with streams() as running:
        yield running


@pytest.fixture
def stream(kinesis: Streams) -> str:
    """A stream that is older than any of the orders, and keeps all of them."""
    return kinesis.make(f"orders-{uuid.uuid4().hex[:8]}", at(-30), hours=24 * 30)


def events_of(kinesis: Streams, stream: str, **options: Any) -> KinesisEvents:
    given = {"region": REGION, "endpoint": kinesis.endpoint, "config": SECRETS, "now": lambda: NOW, "sleep": lambda _: None}  # fmt: skip
    return KinesisEvents(stream, **{**given, **options})


def a_week(first: int = 1, last: int = 7) -> list[tuple[int, datetime, str, Any]]:
    """Return three orders a day, which arrive a minute after they were made."""
    made = [(d * 100 + n, at(d, n * 8), f"{d}.{n:02}") for d in range(first, last + 1) for n in range(3)]  # fmt: skip
    return [(n % 2, t + timedelta(minutes=1), str(n), order(n, t, amount)) for n, t, amount in made]


def expected(*days: int) -> list[tuple[str, int, str]]:
    return [(f"2026-05-{d:02}", d * 100 + n, f"{d}.{n:02}") for d in days for n in range(3)]


def test_each_order_lies_on_its_day_once_however_often_it_is_replayed(
    kinesis: Streams, stream: str, warehouse: Warehouse
) -> None:
    kinesis.send(stream, a_week())
    asset = orders_from(events_of(kinesis, stream))
    warehouse.run_range("2026-05-02", "2026-05-04", asset)
    assert warehouse.rows(ALL) == expected(2, 3, 4)
    warehouse.run(asset, partition_key="2026-05-03")
    warehouse.run_range("2026-05-03", "2026-05-04", asset)
    assert warehouse.rows(ALL) == expected(2, 3, 4)
    ((detail,),) = warehouse.rows("SELECT detail FROM backfill.load_audit WHERE partition_key = '2026-05-02'")  # fmt: skip
    told = json.loads(detail)["source"]
    assert told["source"] == f"stream {stream}"
    assert set(told["offsets"]) == {"shardId-000000000000", "shardId-000000000001"}
    assert all(int(first) < int(end) for first, end in told["offsets"].values())
    assert kinesis.consumers(stream) == 0


def test_orders_in_shards_that_a_resharding_has_closed_are_read_too(
    kinesis: Streams, stream: str, warehouse: Warehouse
) -> None:
    kinesis.send(stream, a_week(1, 3))
    kinesis.split(stream)
    kinesis.send(stream, a_week(4, 7))
    warehouse.run_range("2026-05-02", "2026-05-06", orders_from(events_of(kinesis, stream)))
    assert warehouse.rows(ALL) == expected(2, 3, 4, 5, 6)


def test_days_that_retention_has_taken_are_refused_before_anything_is_deleted(
    kinesis: Streams, stream: str, warehouse: Warehouse
) -> None:
    kinesis.send(stream, a_week())
    asset = orders_from(events_of(kinesis, stream))
    warehouse.run_range("2026-05-02", "2026-05-07", asset)
    before = warehouse.rows(ALL)
    kinesis.keep(stream, 24 * 4)  # since noon of 4 May
    said = failure_of(warehouse.run_range("2026-05-04", "2026-05-06", asset, ok=False))
    assert "no longer holds all their events" in said
    assert "shard shardId-000000000000 begins at 2026-05-04T12:00:00+00:00, a gap of 13:00:00" in said  # fmt: skip
    assert "The first whole one that can be replayed is 2026-05-05" in said
    assert warehouse.rows(ALL) == before
    warehouse.run_range("2026-05-05", "2026-05-07", asset)
    assert warehouse.rows(ALL) == before


def test_a_stream_younger_than_its_retention_has_lost_nothing(
    kinesis: Streams, stream: str, warehouse: Warehouse
) -> None:
    kinesis.made(stream, at(2, 6))
    kinesis.send(stream, a_week(3, 7))
    warehouse.run_range("2026-05-03", "2026-05-04", orders_from(events_of(kinesis, stream)))
    assert warehouse.rows(ALL) == expected(3, 4)


def test_a_retention_that_was_lengthened_is_trusted_only_from_the_declared_time(
    kinesis: Streams, stream: str, warehouse: Warehouse
) -> None:
    kinesis.send(stream, a_week(4, 7))
    asset = orders_from(events_of(kinesis, stream, complete_since=at(4, 0)))
    said = failure_of(warehouse.run(asset, partition_key="2026-05-04", ok=False))
    assert "begins at 2026-05-04T00:00:00+00:00" in said
    warehouse.run(asset, partition_key="2026-05-05")
    assert warehouse.rows(ALL) == expected(5)


def test_what_arrives_after_the_opening_is_not_read(kinesis: Streams, stream: str) -> None:
    kinesis.send(stream, a_week(6, 7))
    with events_of(kinesis, stream).open("a-test") as reading:
        kinesis.send(stream, [(0, NOW + timedelta(seconds=1), "9", order(9, at(7)))])
        found = [b for shard in reading.shards for b in reading.read(shard, at(6, 0), None)]
        assert sum(batch.num_rows for batch in found) == 6
        reading.must_be_whole()
    with events_of(kinesis, stream, now=lambda: NOW + timedelta(seconds=2)).open("a-test") as reading:  # fmt: skip
        found = [b for shard in reading.shards for b in reading.read(shard, at(6, 0), None)]
    assert sum(batch.num_rows for batch in found) == 7


def test_reading_ends_behind_the_window_and_goes_on_by_small_reads(
    kinesis: Streams, stream: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("backfill_assets.strategies.replay.kinesis._MOST_RECORDS", 2)
    kinesis.send(stream, [(0, *rest) for _, *rest in a_week()])
    reads, slept = list[int](), list[float]()

    def count(operation: str, number: int) -> None:
        if operation == "GetRecords":
            reads.append(number)

    with through(kinesis.endpoint, count) as endpoint:
        source = events_of(kinesis, stream, endpoint=endpoint, sleep=slept.append, share=0.2)
        with source.open("a-test") as reading:
            batches = list(reading.read(reading.shards[0], at(3, 0), at(5, 0)))
            assert reading.span(reading.shards[0]) == ("7", "15")
    found = [json.loads(v)["order_id"] for b in batches for v in b["value"].to_pylist()]
    assert found == [300, 301, 302, 400, 401, 402, 500, 501]
    assert [p for b in batches for p in b["position"].to_pylist()] == [str(n) for n in range(7, 15)]
    assert [n for b in batches for n in b["ordinal"].to_pylist()] == list(range(8))
    assert len(reads) == 4
    assert slept == [1.0] * 3  # one of the five reads a second that a shard has


def test_limits_that_are_exceeded_are_waited_for(
    kinesis: Streams, stream: str, warehouse: Warehouse
) -> None:
    kinesis.send(stream, a_week())
    codes = ("ProvisionedThroughputExceededException", "LimitExceededException")
    slept = list[float]()
    with through(kinesis.endpoint, lambda _, n: codes[n % 2] if n < 9 else None) as endpoint:
        source = events_of(kinesis, stream, endpoint=endpoint, sleep=slept.append)
        warehouse.run(orders_from(source), partition_key="2026-05-03")
    assert warehouse.rows(ALL) == expected(3)
    assert slept[:2] == [0.5, 1.0]


def test_limits_that_stay_exceeded_are_told_with_what_to_do(
    kinesis: Streams, stream: str, warehouse: Warehouse
) -> None:
    kinesis.send(stream, a_week())
    refuse = lambda operation, _: "ProvisionedThroughputExceededException" if operation == "GetRecords" else None  # noqa: E731  # fmt: skip
    with through(kinesis.endpoint, refuse) as endpoint:
        source = events_of(kinesis, stream, endpoint=endpoint, patience=2)
        said = failure_of(warehouse.run(orders_from(source), partition_key="2026-05-03", ok=False))
    assert "its readers together exceed its limits, and GetRecords was refused for 2 s" in said
    assert "a smaller share=" in said


def test_an_iterator_that_expires_is_made_anew_and_no_order_is_read_twice(
    kinesis: Streams, stream: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("backfill_assets.strategies.replay.kinesis._MOST_RECORDS", 2)
    kinesis.send(stream, [(0, *rest) for _, *rest in a_week()])
    refuse = lambda operation, n: "ExpiredIteratorException" if operation == "GetRecords" and n % 2 else None  # noqa: E731  # fmt: skip
    with through(kinesis.endpoint, refuse) as endpoint:
        with events_of(kinesis, stream, endpoint=endpoint).open("a-test") as reading:
            batches = list(reading.read(reading.shards[0], at(3, 0), None))
    found = [json.loads(v)["order_id"] for b in batches for v in b["value"].to_pylist()]
    assert found == [d * 100 + n for d in range(3, 8) for n in range(3)]


def test_a_stream_that_is_resharded_or_made_anew_or_shortened_meanwhile_is_told(
    kinesis: Streams, stream: str
) -> None:
    kinesis.send(stream, a_week())
    with events_of(kinesis, stream).open("a-test") as reading:
        kinesis.split(stream)
        with pytest.raises(Away, match="it was resharded while it was read, and events may be in shardId-000000000002, shardId-000000000003"):  # fmt: skip
            reading.must_be_whole()
    with events_of(kinesis, stream).open("a-test") as reading:
        kinesis.keep(stream, 24)
        with pytest.raises(Away, match="its retention was shortened to 24 hours"):
            reading.must_be_whole()
    with events_of(kinesis, stream).open("a-test") as reading:
        kinesis.made(stream, at(8, 11))
        with pytest.raises(Away, match="it was deleted and made anew"):
            reading.must_be_whole()


def test_a_retention_that_overtakes_the_reader_is_told(kinesis: Streams, stream: str) -> None:
    kinesis.send(stream, a_week())
    kinesis.keep(stream, 24 * 5)  # since noon of 3 May
    clock = iter([NOW, NOW + timedelta(hours=13)])
    with events_of(kinesis, stream, now=lambda: next(clock)).open("a-test") as reading:
        with pytest.raises(Refused, match=r"retention, 120 hours, overtook the reader in shard shardId-000000000000: it was at 2026-05-04T00:00:00\+00:00"):  # fmt: skip
            list(reading.read(reading.shards[0], at(4, 0), None))


def test_an_event_that_cannot_be_read_is_named_by_its_sequence_number(
    kinesis: Streams, stream: str, warehouse: Warehouse
) -> None:
    kinesis.send(stream, [*a_week(), (0, at(7, 20), "k", b"\xff\xfe")])
    asset = orders_from(events_of(kinesis, stream))
    said = failure_of(warehouse.run(asset, partition_key="2026-05-07", ok=False))
    assert "shard shardId-000000000000 offset 15: it is not UTF-8 text" in said


def test_a_stream_that_is_not_there_is_told(kinesis: Streams, warehouse: Warehouse) -> None:
    said = failure_of(warehouse.run(orders_from(events_of(kinesis, "nothing")), partition_key="2026-05-03", ok=False))  # fmt: skip
    assert "stream nothing cannot be replayed: there is no such stream at http://127.0.0.1:" in said
    assert "Correct the name or the region" in said


@pytest.mark.parametrize(
    ("code", "why"),
    [
        ("AccessDeniedException", "this role may not DescribeStreamSummary (said on the way)"),
        ("UnrecognizedClientException", "did not accept the credentials"),
        ("ExpiredTokenException", "did not accept the credentials"),
        ("InternalFailureException", "did not answer (DescribeStreamSummary: InternalFailureException"),
    ],
)  # fmt: skip
def test_a_role_without_rights_and_a_stranger_are_told(
    kinesis: Streams, stream: str, warehouse: Warehouse, code: str, why: str
) -> None:
    with through(kinesis.endpoint, lambda *_: code) as endpoint:
        source = events_of(kinesis, stream, endpoint=endpoint)
        said = failure_of(warehouse.run(orders_from(source), partition_key="2026-05-03", ok=False))
    assert why in said


def test_an_endpoint_that_does_not_answer_a_missing_region_and_missing_credentials_are_told(
    kinesis: Streams, stream: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("AWS_DEFAULT_REGION", "AWS_REGION", "AWS_PROFILE", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):  # fmt: skip
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_CONFIG_FILE", "/nothing")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", "/nothing")
    for options, why in (
        ({"endpoint": "http://127.0.0.1:1"}, "Kinesis at http://127.0.0.1:1 did not answer"),
        ({"region": None, "endpoint": None}, "no region is declared, nor in the environment"),
        ({"config": {}}, "no credentials were found"),
    ):
        with pytest.raises(Exception, match=why):
            with events_of(kinesis, stream, **options).open("a-test"):
                pass


def test_credentials_may_come_from_variables(
    kinesis: Streams, stream: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STREAM_KEY", "tester")
    secrets = {"aws_access_key_id": dg.EnvVar("STREAM_KEY"), "aws_secret_access_key": dg.EnvVar("STREAM_KEY")}  # fmt: skip
    with events_of(kinesis, stream, config=secrets).open("a-test") as reading:
        assert len(reading.shards) == 2


def test_a_share_that_is_none_is_refused_when_it_is_declared() -> None:
    with pytest.raises(DeclarationError, match=r"share=0 is no share"):
        KinesisEvents("orders", share=0)


def test_an_order_in_two_shards_after_a_resharding_needs_an_ordering(
    kinesis: Streams, stream: str, warehouse: Warehouse
) -> None:
    kinesis.send(stream, [(0, at(3, 1), "1", order(1, at(3), "1.00", version=1))])
    kinesis.split(stream)
    kinesis.send(stream, [(1, at(3, 2), "1", order(1, at(3), "2.00", version=2))])
    source = events_of(kinesis, stream)
    said = failure_of(warehouse.run(orders_from(source), partition_key="2026-05-03", ok=False))
    assert "events of one key (order_id) came in several shards" in said
    events = Events({**EVENTS.fields, "version": "INTEGER"}, time="ordered_at", key=("order_id",), ordering=("version",))  # fmt: skip
    warehouse.run(orders_from(source, events), partition_key="2026-05-03")
    assert warehouse.rows(ALL) == [("2026-05-03", 1, "2.00")]
