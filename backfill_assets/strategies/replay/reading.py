"""One pass over a source into the scratch database: a thread for each shard, bounded queues, and a line now and then."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from backfill_assets.engines import Report
from backfill_assets.strategies.replay.scratch import Scratch
from backfill_assets.strategies.replay.source import Reading, Shard

if TYPE_CHECKING:
    import pyarrow as pa

_WAITING = 2  # batches of each shard that wait for the scratch database
_SECONDS_A_LINE = 5.0
_ENDING_SECONDS = 5.0
_ENDED = object()


@dataclass(frozen=True)
class Pass:
    """What one pass read: events, and how long it took in seconds."""

    events: int
    seconds: float


def read_into(
    scratch: Scratch,
    reading: Reading,
    start: datetime,
    end: datetime | None,
    say: Report,
    at_once: int = 1,
    clock: Callable[[], float] = time.monotonic,
) -> Pass:
    """Put the events of `[start, end)` of every shard into `scratch`, `at_once` shards at a time; raise what one raised."""
    shards = [shard for shard in reading.shards if not shard.is_empty]
    totals = [shard.total for shard in shards]
    known = [total for total in totals if total is not None]
    progress = _Progress(sum(known) if len(known) == len(totals) else None, say, clock)
    for place, batch in _batches(reading, shards, start, end, at_once):
        scratch.add(place, batch)
        progress.after(batch.num_rows)
    return Pass(progress.done, clock() - progress.began)


class _Progress:
    """How far a pass is: rate, and at most how long it still takes."""

    def __init__(self, total: int | None, say: Report, clock: Callable[[], float]) -> None:
        self._total, self._say, self._clock = total, say, clock
        self.began = self._told = clock()
        self.done = 0

    def after(self, count: int) -> None:
        self.done += count
        now = self._clock()
        if now - self._told < _SECONDS_A_LINE:
            return
        self._told = now
        rate = self.done / (now - self.began)
        told = f"{self.done:,} events read, {rate:,.0f} a second"
        if self._total is not None and rate:
            told += f"; {max(0, self._total - self.done) / rate:,.0f} s are left at the most"
        self._say(f"{told}.")


def _batches(
    reading: Reading, shards: list[Shard], start: datetime, end: datetime | None, at_once: int
) -> Iterator[tuple[int, pa.Table]]:
    """Yield batches of all shards as they come, with the shard's number; stop every thread at the end."""
    waiting: queue.Queue[tuple[int, Any]] = queue.Queue(maxsize=_WAITING * max(1, at_once))
    stop = threading.Event()
    todo = iter([(place, s) for place, s in enumerate(reading.shards) if s in shards])
    turn = threading.Lock()

    def work() -> None:
        while not stop.is_set():
            with turn:
                place, shard = next(todo, (-1, None))
            if shard is None:
                break
            try:
                for batch in reading.read(shard, start, end):
                    if not _put(waiting, (place, batch), stop):
                        return
            except BaseException as error:
                _put(waiting, (place, error), stop)
                return
        _put(waiting, (-1, _ENDED), stop)

    threads = [
        threading.Thread(target=work, name=f"replay-{n}", daemon=True)
        for n in range(min(at_once, len(shards)))
    ]
    for thread in threads:
        thread.start()
    try:
        running = len(threads)
        while running:
            place, found = waiting.get()
            if found is _ENDED:
                running -= 1
            elif isinstance(found, BaseException):
                raise found
            else:
                yield place, found
    finally:
        stop.set()
        for thread in threads:
            thread.join(
                _ENDING_SECONDS
            )  # one that waits for its source ends with that wait, and is of no use till then


def _put(
    waiting: queue.Queue[tuple[int, Any]], item: tuple[int, Any], stop: threading.Event
) -> bool:
    """Hand a batch over; False where nobody wants it any more."""
    while not stop.is_set():
        try:
            waiting.put(item, timeout=0.2)
            return True
        except queue.Full:
            continue
    return False
