"""Events of a Kinesis stream, read by shard with plain reads, as far as they went when it was opened; no consumer is registered."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from backfill_assets.engines.drivers import driver
from backfill_assets.errors import Away, DeclarationError, Refused
from backfill_assets.settings import told_now
from backfill_assets.strategies.replay.kinesis_calls import Calls
from backfill_assets.strategies.replay.source import (
    Reading,
    Shard,
    must_be_aware,
    utc_now,
)

if TYPE_CHECKING:
    import pyarrow as pa

# what one shard gives all its readers together: reads and bytes a second
_READS, _BYTES = 5, 2_000_000
_MOST_BYTES = (
    4_000_000  # of one read; it may give ten million, and then nothing to anybody for five seconds
)
_MOST_RECORDS = 10_000
_EXPECTED_BYTES = 4_000  # of a record, as long as none was seen
# arrival times are approximate, so an event may stand a little behind one that came after it
_DISORDER = timedelta(seconds=5)


@dataclass(frozen=True)
class KinesisEvents:
    """The events of `stream` in `region`, by default that of the environment; `endpoint` is a URL, for a stand-in.

    `config` goes to boto3's client (`aws_access_key_id` ...); a value may be a `dagster.EnvVar`. By default credentials
    are found as boto3 finds them. An event's broker time is when it arrived; what arrives after the opening is not read.

    A shard's limits (five reads and 2 MB a second) are shared with the live consumers: `share` is the part of them that
    a replay takes. `patience` (seconds) is how long it waits, in all, where the stream says that they are exceeded.

    Nothing is missing since the stream was made, or for as long as its retention is. That is asked of the stream, which
    does not say when its retention was lengthened: give `complete_since` (aware) where that was lately.
    After a resharding, one key's events may be in several shards, so `Events.ordering` is needed. Records that the
    producer library has aggregated are not taken apart.

    Needs the extra `kinesis` and, of the role, kinesis:DescribeStreamSummary, ListShards, GetShardIterator, GetRecords.
    """

    stream: str
    region: str | None = None
    endpoint: str | None = None
    config: Mapping[str, Any] = field(default_factory=dict[str, Any], hash=False)
    share: float = 0.5
    patience: float = 300.0
    complete_since: datetime | None = None
    now: Callable[[], datetime] = utc_now
    sleep: Callable[[float], None] = time.sleep
    shard_word = "shard"

    def __post_init__(self) -> None:
        if not 0 < self.share <= 1:
            raise self._wrong(f"share={self.share!r} is no share", "Give a number above 0 and up to 1")  # fmt: skip
        must_be_aware(self, self.complete_since)

    def _wrong(self, why: str, do: str) -> DeclarationError:
        return DeclarationError(f"the events of {self.name} cannot be declared so", why, do)

    @property
    def name(self) -> str:
        """What a sentence calls it."""
        return f"stream {self.stream}"

    @contextlib.contextmanager
    def open(self, who: str) -> Iterator[Reading]:
        """Ask the stream for its shards and its retention, and fix the end: now."""
        boto3 = driver("boto3", "Kinesis", "backfill-assets[kinesis]")
        given = {k: told_now(v, f"{k} of {self.name}") for k, v in self.config.items()}
        calls = Calls(boto3, self.stream, self.region, self.endpoint, given, self.patience, self.sleep)  # fmt: skip
        try:
            yield _Stream(self, calls)
        finally:
            calls.close()


class _Stream:
    keeps_last_only = False

    def __init__(self, source: KinesisEvents, calls: Calls) -> None:
        self._source, self._calls = source, calls
        self._opened = source.now()
        told = calls.summary()
        self._made: datetime = told["StreamCreationTimestamp"]
        self._kept = timedelta(hours=told["RetentionPeriodHours"])
        self._spans: dict[str, tuple[str, str]] = {}
        since = self._since()
        self._shards = [self._shard(found, since) for found in calls.shards()]

    @property
    def shards(self) -> Sequence[Shard]:
        return self._shards

    def _shard(self, found: Mapping[str, Any], since: datetime) -> Shard:
        numbers = found["SequenceNumberRange"]
        end = numbers.get("EndingSequenceNumber", self._opened.isoformat())
        return Shard(found["ShardId"], numbers["StartingSequenceNumber"], end, since, None)

    def _since(self) -> datetime:
        """Return since when nothing is missing: the oldest that is kept; the stream's making where that is younger.

        A stream may be made anew: what was before it is whole only where the source says so.
        """
        oldest, declared = self._opened - self._kept, self._source.complete_since
        if declared is not None:
            return declared if oldest <= self._made else max(oldest, declared)
        return max(oldest, self._made)

    def read(self, shard: Shard, start: datetime, end: datetime | None) -> Iterator[pa.Table]:
        """Read what arrived in `[start, end)`, and up to the opening."""
        until = self._opened if end is None else min(end, self._opened)
        if start >= until:
            return
        calls, pace = self._calls, _Pace(self._source.share, self._source.sleep)
        place, first, last = 0, None, None
        # up to which time everything was read: were that no longer kept, the next read would begin later
        reached = max(start, self._made)
        iterator = calls.at(shard.name, start)
        while iterator is not None:
            found = calls.records(shard.name, iterator, pace.records, after=last, since=start)
            self._must_be_kept(shard, reached)
            records = found["Records"]
            pace.after(records)
            if records:
                last = records[-1]["SequenceNumber"]
            reached = max(reached, self._place(found))
            kept = [r for r in records if r["ApproximateArrivalTimestamp"] <= self._opened]
            if kept:
                first = first or kept[0]["SequenceNumber"]
                self._spans[shard.name] = (first, str(int(kept[-1]["SequenceNumber"]) + 1))
                yield _table(kept, place)
                place += len(kept)
            if self._is_done(found, until):
                return
            iterator = found.get("NextShardIterator")
            pace.wait()

    def _is_done(self, found: Mapping[str, Any], until: datetime) -> bool:
        if not found.get("MillisBehindLatest"):
            return True
        times = [r["ApproximateArrivalTimestamp"] for r in found["Records"]]
        return min(times, default=self._place(found)) > until + _DISORDER

    def _place(self, found: Mapping[str, Any]) -> datetime:
        """Return how far a read went: to its last event, or, since it may find nothing on its way, to the age that it tells."""
        if found["Records"]:
            return found["Records"][-1]["ApproximateArrivalTimestamp"]
        return self._source.now() - timedelta(milliseconds=found.get("MillisBehindLatest") or 0)

    def _must_be_kept(self, shard: Shard, reached: datetime) -> None:
        oldest = self._source.now() - self._kept
        if oldest > reached:
            raise Refused(
                f"{self._source.name} was not read whole",
                f"retention, {self._kept.total_seconds() / 3600:.0f} hours, overtook the reader in shard {shard.name}:"
                f" it was at {reached.isoformat()} when events before {oldest.isoformat()} were removed",
                "Launch it again: what is gone is told before anything is deleted",
            )

    def span(self, shard: Shard) -> tuple[str, str] | None:
        return self._spans.get(shard.name)

    def must_be_whole(self) -> None:
        """Raise where the stream was resharded, made anew, or its retention shortened meanwhile."""
        told = self._calls.summary()
        what = f"{self._source.name} was not read whole"
        if told["StreamCreationTimestamp"] != self._made:
            raise Away(what, "it was deleted and made anew while it was read", "Launch it again")
        if (hours := timedelta(hours=told["RetentionPeriodHours"])) < self._kept:
            raise Away(what, f"its retention was shortened to {hours.total_seconds() / 3600:.0f} hours while it was read", "Launch it again")  # fmt: skip
        then = {shard.name for shard in self._shards}
        if new := sorted({found["ShardId"] for found in self._calls.shards()} - then):
            raise Away(what, f"it was resharded while it was read, and events may be in {', '.join(new[:3])}", "Launch it again once it is active")  # fmt: skip

    def notes(self) -> Mapping[str, object]:
        return {}


class _Pace:
    """How much is read at once and how often, so that live consumers of a shard keep their part."""

    def __init__(self, share: float, sleep: Callable[[float], None]) -> None:
        self._share, self._sleep = share, sleep
        self._size = float(_EXPECTED_BYTES)
        self._read = 0

    @property
    def records(self) -> int:
        """How many records to ask for."""
        return max(1, min(_MOST_RECORDS, int(_MOST_BYTES * self._share / self._size)))

    def after(self, records: Sequence[Mapping[str, Any]]) -> None:
        """Hear what a read gave."""
        self._read = sum(len(r["Data"]) + len(r["PartitionKey"]) for r in records)
        if records:
            self._size = max(1.0, self._read / len(records))

    def wait(self) -> None:
        """Wait until the next read takes no more than its part."""
        self._sleep(max(1 / (_READS * self._share), self._read / (_BYTES * self._share)))


def _table(records: Sequence[Mapping[str, Any]], place: int) -> pa.Table:
    import pyarrow as pa

    return pa.table(
        {
            "ordinal": pa.array(range(place, place + len(records)), pa.int64()),
            "at": pa.array([r["ApproximateArrivalTimestamp"] for r in records], pa.timestamp("us", "UTC")),
            "key": pa.array([r["PartitionKey"].encode() for r in records], pa.binary()),
            "value": pa.array([r["Data"] for r in records], pa.binary()),
            "position": pa.array([r["SequenceNumber"] for r in records], pa.string()),
        }
    )  # fmt: skip
