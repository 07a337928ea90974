"""Events of a Kafka topic, read by partition without a group, between offsets that are fixed when it is opened."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING, Any

from backfill_assets.engines.drivers import driver
from backfill_assets.errors import (
    Away,
    BackfillError,
    DeclarationError,
    MissingRight,
    MissingTable,
    Refused,
    Unreachable,
)
from backfill_assets.settings import told_now
from backfill_assets.strategies.replay.source import (
    Reading,
    Shard,
    must_be_aware,
    utc_now,
)

if TYPE_CHECKING:
    import pyarrow as pa

# what leaves others undisturbed, and tells of what is gone
_OURS = {
    "enable.auto.commit": False,
    "enable.auto.offset.store": False,
    "auto.offset.reset": "error",
    "isolation.level": "read_committed",
    "enable.partition.eof": True,
}
_AT_A_TIME = 2_000  # messages that the client hands over: more of them leave the processor's cache
_BATCH = 20_000
_SECONDS = 30.0
_SETTLED = 1_000  # events in a row behind the window, after which no more of it are looked for
_AT_FIRST = 32  # before their size is known
_BYTES = 8 * 2**20  # of a batch, however few events that are
_PROBED = 50  # first events that are looked at to tell since when nothing is missing
_LATE_MS = 3_600_000
_FLOW = 5  # events that are needed to tell how close they are
_SILENT = 30.0  # seconds without an event before the end, after which a transaction or a broker is given up


@dataclass(frozen=True)
class KafkaEvents:
    """The events of `topic` at `servers` (`host:port,...`).

    `config` goes to the client (`security.protocol`, `sasl.mechanism` ...); a value may be a `dagster.EnvVar`, so that
    no secret stands in code. `live_group` is the group whose offsets are shown to be the same before and after.
    `disorder` is by how much a broker time may be behind those before it: the first event that is retained proves
    nothing about a time nearer to it than that, and so much more is read behind a window.

    A topic that still has its very first event may be younger than the stream: nothing counts as whole before that event
    unless `complete_since` (aware) says so. `compacted` says whether the topic keeps only the last event of a key; by
    default it is asked.

    Needs the extra `kafka` and, of the cluster, DESCRIBE, DESCRIBE_CONFIGS and READ on the topic, and DESCRIBE on the
    live group; it joins no group and commits nothing.
    """

    servers: str
    topic: str
    config: Mapping[str, Any] = field(default_factory=dict[str, Any], hash=False)
    live_group: str | None = None
    disorder: timedelta = timedelta(0)
    complete_since: datetime | None = None
    compacted: bool | None = None
    buffer_mb: int = 16
    shard_word = "partition"

    def __post_init__(self) -> None:
        taken = {*_OURS, "bootstrap.servers", "group.id", "default.topic.config"}
        ours = sorted(taken.intersection(self.config))
        if ours:
            raise DeclarationError(
                f"{self.name} cannot be declared with {', '.join(ours)}",
                "a reader that leaves others alone and notices what is gone sets that itself",
                "Leave it out of config",
            )
        must_be_aware(self, self.complete_since)

    @property
    def name(self) -> str:
        """What a sentence calls it."""
        return f"topic {self.topic}"

    @contextlib.contextmanager
    def open(self, who: str) -> Iterator[Reading]:
        """Ask each partition for its first and last offset, and fix them."""
        kafka = driver("confluent_kafka", "Kafka", "kafka")
        reading = _Topic(self, who, kafka)
        try:
            reading.fix()
            yield reading
        finally:
            reading.close()

    def settings(self, group: str) -> dict[str, Any]:
        """Return what the client is told, for a reader that never commits and never joins."""
        return {
            "receive.message.max.bytes": 1_000_000_000,
            **{k: told_now(v, f"{k} of {self.name}") for k, v in self.config.items()},
            "bootstrap.servers": self.servers,
            "group.id": group,
            **_OURS,
            "allow.auto.create.topics": False,
            "queued.max.messages.kbytes": self.buffer_mb * 1024,
            "log_level": 2,
        }


class _Topic:
    def __init__(self, source: KafkaEvents, who: str, kafka: Any) -> None:
        self._source, self._who, self._kafka = source, who, kafka
        self._shards: list[Shard] = []
        self._spans: dict[str, tuple[str, str]] = {}
        self._from: dict[int, int] = {}
        self._live_before: dict[str, int] | None = None
        self.keeps_last_only = False
        # its offsets are those of all events: to a reader of committed ones the first open transaction is the end
        uncommitted = {"isolation.level": "read_uncommitted"}
        self._consumer = self._new_consumer("bounds", **uncommitted)

    @property
    def shards(self) -> Sequence[Shard]:
        return self._shards

    def _group(self, shard: str) -> str:
        return f"backfill-{self._who}-{shard}"

    def _new_consumer(self, shard: str, **settings: str) -> Any:
        with self._told("begin to read"):
            return self._kafka.Consumer({**self._source.settings(self._group(shard)), **settings})

    def fix(self) -> None:
        """Ask for partitions, first and last offsets, and what the live group has committed."""
        numbers = self._partitions()
        if self._source.live_group:
            self._live_before = self._committed()
        declared = self._source.compacted
        self.keeps_last_only = self._is_compacted() if declared is None else declared
        marks = {n: self._marks(n) for n in numbers}
        began = self._began({n: m for n, m in marks.items() if m[0] == 0})
        self._shards = [self._shard(n, *marks[n], began) for n in numbers]

    def _partitions(self) -> list[int]:
        topic = self._source.topic
        with self._told(f"look at topic {topic}"):
            found = self._consumer.list_topics(topic, timeout=_SECONDS).topics.get(topic)
            if found is None or found.error is not None:
                raise self._kafka.KafkaException(
                    found.error if found else self._kafka.KafkaError(3)
                )
        return sorted(found.partitions)

    def _began(self, whole: Mapping[int, tuple[int, int]]) -> datetime | None:
        """Return since when partitions that still have their first event hold all: the topic may be made anew."""
        if self._source.complete_since is not None:
            return self._source.complete_since
        first = [self._first_time(n, low) for n, (low, high) in whole.items() if high > 0]
        return min(first, default=utc_now() if whole else None)

    def _shard(self, number: int, low: int, high: int, began: datetime | None) -> Shard:
        since = self._first_time(number, low) if low > 0 else began
        return Shard(str(number), str(low), str(high), since, high - low)

    def _marks(self, number: int, reader: Any = None) -> tuple[int, int]:
        """Return the first offset that is retained, and the one behind the last, or the last that `reader` may see."""
        with self._told(f"ask for the offsets of partition {number}"):
            return (reader or self._consumer).get_watermark_offsets(
                self._partition(number), timeout=_SECONDS
            )

    def _partition(self, number: int, offset: int | None = None) -> Any:
        kind = self._kafka.TopicPartition
        topic = self._source.topic
        return kind(topic, number) if offset is None else kind(topic, number, offset)

    def _first_time(self, number: int, low: int) -> datetime:
        """Return since when nothing is missing: what was aged out came before the first event that is left."""
        times: list[int] = []
        ended = False
        with contextlib.closing(self._new_consumer(f"{number}-first")) as consumer:
            consumer.assign([self._partition(number, low)])
            until = time.monotonic() + _SECONDS
            while len(times) < _PROBED and not ended and time.monotonic() < until:
                message = consumer.poll(1.0)
                if message is None:
                    continue
                if message.error() is not None:
                    if message.error().code() == self._kafka.KafkaError._PARTITION_EOF:
                        ended = True
                        continue
                    raise self._ours(message.error(), f"read the first event of partition {number}")
                times.append(message.timestamp()[1])
        if not times and not ended:
            raise Away(
                f"{self._source.name} cannot be replayed",
                f"the first event of partition {number} did not come within {_SECONDS:.0f} s",
                "Look at the broker, then launch it again: nothing was changed",
            )
        return utc_now() if not times else _since(times, self._source.disorder)

    def read(self, shard: Shard, start: datetime, end: datetime | None) -> Iterator[pa.Table]:
        """Read from the first offset at or after `start` until events are settled behind `end`, or the fixed end."""
        number, last = int(shard.name), int(shard.end)
        begin = self._offset_at(number, start, int(shard.first), last)
        if begin is None:
            return
        self._from[number] = begin
        stop = None if end is None else int((end + self._source.disorder).timestamp() * 1000)
        with contextlib.closing(self._new_consumer(shard.name)) as consumer:
            consumer.assign([self._partition(number, begin)])
            position, behind, heard = begin, 0, time.monotonic()
            parts: list[pa.Table] = []
            count, size = _AT_FIRST, 0
            while position < last and (stop is None or behind < _SETTLED):
                messages = consumer.consume(count, 1.0)
                good, ended = self._sorted_out(messages, number, last)
                if good:
                    heard = time.monotonic()
                    position = good[-1].offset() + 1
                    parts.append(_table(good))
                    behind = _behind(parts[-1], stop, behind)
                    size += parts[-1].nbytes
                    # large events come few at a time, so that memory does not grow with them
                    count = max(1, min(_AT_A_TIME, _BYTES * len(good) // max(1, parts[-1].nbytes)))
                full = len(parts) * _AT_A_TIME >= _BATCH or size >= _BYTES
                if parts and (ended or not good or full):
                    yield _joined(parts)
                    parts, size = [], 0
                    heard = time.monotonic()  # while it was handed over nobody listened
                if ended:
                    break
                if not good and time.monotonic() - heard > _SILENT:
                    raise self._silent(consumer, number, position, last)
            if parts:
                yield _joined(parts)
        self._spans[shard.name] = (str(begin), str(position))

    def _offset_at(self, number: int, start: datetime, first: int, last: int) -> int | None:
        """Return the first offset whose event is at or after `start`; None where there is none before the end."""
        moment = max(0, int(start.timestamp() * 1000))
        with self._told(f"look for {start.isoformat()} in partition {number}"):
            (found,) = self._consumer.offsets_for_times(
                [self._partition(number, moment)], timeout=_SECONDS
            )
            if found.error is not None:
                raise self._kafka.KafkaException(found.error)
        if not 0 <= found.offset < last:
            return None  # -1 is the end: no event is that young
        low, _ = self._marks(number)
        if first < low and found.offset <= low:
            # the broker names the first event that is left, whatever came before it
            raise self._lost(number, low, first)
        return found.offset

    def _sorted_out(self, messages: list[Any], number: int, last: int) -> tuple[list[Any], bool]:
        """Return the events before the fixed end, and whether the end was seen; raise what the broker says."""
        eof, good = self._kafka.KafkaError._PARTITION_EOF, list[Any]()
        if messages and not any(m.error() for m in messages) and messages[-1].offset() < last:
            return messages, messages[-1].offset() == last - 1
        for message in messages:
            error = message.error()
            if error is None:
                if message.offset() >= last:
                    return good, True
                good.append(message)
            elif error.code() == eof:
                # before the fixed end it is a transaction that is open: what is behind it comes once that is over
                if message.offset() >= last:
                    return good, True
            else:
                raise self._ours(error, f"read partition {number}")
        return good, False

    def _silent(self, consumer: Any, number: int, at: int, last: int) -> BackfillError:
        """Return why nothing came any more: a transaction hides it, or the broker is gone."""
        what = f"partition {number} of {self._source.name} was not read to its end"
        if self._marks(number, consumer)[1] < last:
            return Refused(
                what,
                f"a transaction that is still open hides what is behind offset {at} of {last}",
                "Let its producer commit or abort it, then launch this again: nothing was changed",
            )
        return Away(
            what,
            f"no event came for {_SILENT:.0f} s, at offset {at} of {last}",
            "Look at the broker, then launch it again: nothing was changed",
        )

    def span(self, shard: Shard) -> tuple[str, str] | None:
        return self._spans.get(shard.name)

    def must_be_whole(self) -> None:
        """Raise where retention overtook the reader, or partitions were added meanwhile."""
        for number, begin in self._from.items():
            low, _ = self._marks(number)
            if low > begin:
                raise self._lost(number, low, begin)
        now, then = self._partitions(), [int(shard.name) for shard in self._shards]
        if now != then:
            raise Away(
                f"{self._source.name} was not read whole",
                f"it has {len(now)} partitions now and had {len(then)} when the run began, and events may be in the new ones",
                "Launch it again",
            )

    def _lost(self, number: int, low: int, begin: int) -> Refused:
        return Refused(
            f"{self._source.name} was not read whole",
            f"partition {number} lost its events before offset {low} while it was read from {begin} on",
            "Launch it again: what is gone is told before anything is deleted",
        )

    def notes(self) -> Mapping[str, object]:
        if self._live_before is None:
            return {}
        now = self._committed()
        lag = {n: self._marks(int(n))[1] - offset for n, offset in now.items()}
        return {
            "live_group": self._source.live_group,
            "live_offsets_before": self._live_before,
            "live_offsets_after": now,
            "live_lag": lag,
        }

    def _committed(self) -> dict[str, int]:
        """Return what the live group has committed, by partition; reading it joins nothing."""
        settings = {**self._source.settings(""), "group.id": str(self._source.live_group)}
        what = f"see what {self._source.live_group} has committed"
        with contextlib.closing(self._kafka.Consumer(settings)) as consumer, self._told(what):
            partitions = [self._partition(n) for n in self._partitions()]
            found = consumer.committed(partitions, timeout=_SECONDS)
            for place in found:
                if place.error is not None:
                    raise self._kafka.KafkaException(place.error)
        return {str(p.partition): p.offset for p in found if p.offset >= 0}

    def _is_compacted(self) -> bool:
        """Tell whether the topic keeps only the last event of a key."""
        admin_of = driver("confluent_kafka.admin", "Kafka", "kafka")
        admin = admin_of.AdminClient(self._for_admin())
        topic = admin_of.ConfigResource(admin_of.ResourceType.TOPIC, self._source.topic)
        with self._told("see whether it is compacted (if it is not, say compacted=False)"):
            found = admin.describe_configs([topic], request_timeout=_SECONDS)[topic].result()
        policy = found.get("cleanup.policy")
        return policy is not None and "compact" in str(policy.value)

    def _for_admin(self) -> dict[str, Any]:
        of_consumers = {*_OURS, "group.id", "queued.max.messages.kbytes"}
        return {k: v for k, v in self._source.settings("").items() if k not in of_consumers}

    @contextlib.contextmanager
    def _told(self, what: str) -> Iterator[None]:
        try:
            yield
        except self._kafka.KafkaException as error:
            raise self._ours(error.args[0], what) from error

    def _ours(self, error: Any, what: str) -> BackfillError:
        """Return an error of the client as one of ours."""
        codes, code = self._kafka.KafkaError, error.code()
        said, name = error.str(), self._source.name
        if code in (codes.UNKNOWN_TOPIC_OR_PART, codes._UNKNOWN_TOPIC, codes._UNKNOWN_PARTITION):
            return MissingTable(f"{name} cannot be replayed", f"there is no such topic at {self._source.servers}", "Correct the name, or the servers")  # fmt: skip
        if code in (codes.TOPIC_AUTHORIZATION_FAILED, codes.GROUP_AUTHORIZATION_FAILED, codes.CLUSTER_AUTHORIZATION_FAILED):  # fmt: skip
            return MissingRight(f"{name} cannot be replayed", f"this user may not {what} ({said})", "Grant DESCRIBE, DESCRIBE_CONFIGS and READ on the topic, and DESCRIBE on the live group")  # fmt: skip
        if code in (codes._INVALID_ARG, codes._INVALID_TYPE):
            return DeclarationError(f"{name} cannot be replayed", f"its client does not take its settings ({said})", "Correct config")  # fmt: skip
        if code in (codes._AUTHENTICATION, codes.SASL_AUTHENTICATION_FAILED, codes._SSL, codes._RESOLVE):  # fmt: skip
            return Unreachable(f"{name} cannot be replayed", f"the broker at {self._source.servers} did not let us in ({said})", "Correct the servers, or the client's config")  # fmt: skip
        if code in (codes._AUTO_OFFSET_RESET, codes.OFFSET_OUT_OF_RANGE):
            return Refused(f"{name} was not read whole", "events were removed by its retention while they were read", "Launch it again: what is gone is told before anything is deleted")  # fmt: skip
        return Away(f"{name} cannot be replayed", f"the broker at {self._source.servers} did not let us {what} ({said})", "Look at the broker, then launch it again: nothing was changed")  # fmt: skip

    def close(self) -> None:
        """Close the client; its groups never had a member or an offset, and one that is there all the same is removed."""
        self._consumer.close()
        admin_of = driver("confluent_kafka.admin", "Kafka", "kafka")
        names = [self._group(x) for s in self._shards for x in (s.name, f"{s.name}-first")]
        with contextlib.suppress(self._kafka.KafkaException):
            admin = admin_of.AdminClient(self._for_admin())
            there = {
                g.group_id for g in admin.list_consumer_groups(request_timeout=5).result().valid
            }
            ours = [name for name in (*names, self._group("bounds")) if name in there]
            for done in (
                admin.delete_consumer_groups(ours, request_timeout=5) if ours else {}
            ).values():
                with contextlib.suppress(self._kafka.KafkaException):
                    done.result()


def _since(times: Sequence[int], disorder: timedelta) -> datetime:
    """Return since when nothing is missing, by the times (ms) of the first events that are left.

    Those at the head that are far older than all behind them, for how close these are to each other, were late themselves.
    """
    since = 0
    for place in range(1, len(times) - _FLOW):
        later = sorted(times[place:])
        apart = (later[-1] - later[0]) / (len(later) - 1)
        if later[0] - max(times[:place]) > max(_LATE_MS, 10 * apart):
            since = place
    return datetime.fromtimestamp(min(times[since:]) / 1000, timezone.utc) + disorder


def _table(messages: list[Any]) -> pa.Table:
    import pyarrow as pa

    return pa.table(
        {
            "ordinal": pa.array([m.offset() for m in messages], pa.int64()),
            "at": pa.array([m.timestamp()[1] for m in messages], pa.int64())
            .cast(pa.timestamp("ms", "UTC"))
            .cast(pa.timestamp("us", "UTC")),
            "key": pa.array([m.key() for m in messages], pa.binary()),
            "value": pa.array([m.value() for m in messages], pa.binary()),
        }
    )


def _joined(parts: list[pa.Table]) -> pa.Table:
    import pyarrow as pa

    return pa.concat_tables(parts)


def _behind(table: pa.Table, stop: int | None, before: int) -> int:
    """Return how many events in a row, up to now, are behind the window."""
    if stop is None:
        return 0
    import pyarrow as pa

    times: Any = table["at"].cast(pa.int64()).to_numpy()
    inside = (times < stop * 1000).nonzero()[0]
    return len(times) - 1 - int(inside[-1]) if len(inside) else before + len(times)
