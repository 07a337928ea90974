"""What a replay asks of a place that keeps events: which shards, since when nothing is missing, and a window of them.

A source differs from another in how it is asked, never in what a slice is allowed to be.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Protocol

from backfill_assets.errors import DeclarationError

if TYPE_CHECKING:
    import pyarrow as pa


def utc_now() -> datetime:
    """Return this machine's time."""
    return datetime.now(timezone.utc)


def must_be_aware(source: EventSource, complete_since: datetime | None) -> None:
    """Raise where the time since which a source is declared to be complete has no zone."""
    if complete_since is not None and complete_since.tzinfo is None:
        raise DeclarationError(
            f"the events of {source.name} cannot be declared so",
            f"complete_since={complete_since.isoformat()} has no zone",
            "Give an aware datetime",
        )


@dataclass(frozen=True)
class Shard:
    """A partition, shard or file group, as it was when the source was opened.

    `first` is the position of the first event that is still there, `end` the one behind the last: they are fixed, and
    what comes later is not read. `since` (aware) is the time from which on nothing is missing; None where nothing ever
    was, so that there were no events before the first. `total` is how many there are at most; None where the source cannot tell.
    """

    name: str
    first: str
    end: str
    since: datetime | None
    total: int | None

    @property
    def is_empty(self) -> bool:
        """Whether it holds nothing to read."""
        return self.total == 0


class Reading(Protocol):
    """An open source, its ends fixed.

    Batches have the columns `ordinal` (a count within the shard), `at` (the broker's own time), `key` and `value`; where
    positions are no numbers also `position`, a text.
    """

    @property
    def shards(self) -> Sequence[Shard]: ...

    @property
    def keeps_last_only(self) -> bool:
        """Whether it may have dropped events of a key that has a newer one, as a compacted topic does."""
        ...

    def read(self, shard: Shard, start: datetime, end: datetime | None) -> Iterator[pa.Table]:
        """Yield the events of `shard` whose broker time is in `[start, end)`, and maybe others; none behind its end.

        `end` is None for all that there are. It is called from a thread of its own for each shard.
        """
        ...

    def span(self, shard: Shard) -> tuple[str, str] | None:
        """Return where reading the shard began and ended, half-open; None where nothing was read of it."""
        ...

    def must_be_whole(self) -> None:
        """Raise when events went missing, or a shard came, while they were read."""
        ...

    def notes(self) -> Mapping[str, object]:
        """Return what else is to be told: of the live consumer, for example."""
        ...


class EventSource(Protocol):
    """Where events are. Making one connects to nothing and imports no driver."""

    @property
    def name(self) -> str:
        """What a sentence calls it: `topic orders`."""
        ...

    @property
    def shard_word(self) -> str:
        """What a sentence calls one of its shards: `partition`."""
        ...

    def open(self, who: str) -> AbstractContextManager[Reading]:
        """Open it for a reader that nobody else is, called `who`, and fix its ends."""
        ...
