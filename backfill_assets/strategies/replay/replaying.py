"""One replay: what is retained, one pass over the source, and the rows of each slice, for the one write path."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, cast

from backfill_assets.engines import Report
from backfill_assets.errors import DeclarationError, Refused
from backfill_assets.io_managers.sessions import Sessions
from backfill_assets.io_managers.values import Made, Opened
from backfill_assets.slice import Slice
from backfill_assets.strategies.replay.events import Events
from backfill_assets.strategies.replay.quarantine import poison, poisoned, put_aside
from backfill_assets.strategies.replay.reading import Pass, read_into
from backfill_assets.strategies.replay.reducing import (
    Transform,
    counted,
    keep_last,
    must_be_sql,
    refuse_ambiguous,
    rows_of,
)
from backfill_assets.strategies.replay.retained import Retained, gone, retained
from backfill_assets.strategies.replay.scratch import Scratch, scratch
from backfill_assets.strategies.replay.source import EventSource, Reading, utc_now
from backfill_assets.table import SliceColumn, SliceKind, Table
from backfill_assets.writing.run import Run

_KINDS: dict[str, SliceKind] = {
    "TIMESTAMPTZ": "timestamptz",
    "TIMESTAMP": "timestamp",
    "DATE": "date",
}


@dataclass(frozen=True)
class Replay:
    """Which events become the rows of a table, and how.

    `memory_mb` bounds the scratch database, which spills to `folder`; `readers` is how many shards are read at a time.
    """

    source: EventSource
    events: Events
    transform: Transform = None
    memory_mb: int = 96
    readers: int = 2
    folder: Path | None = None
    quarantine_schema: str = "backfill"
    now: Callable[[], datetime] = utc_now

    def __post_init__(self) -> None:
        for name, least in (("memory_mb", 32), ("readers", 1)):
            if getattr(self, name) < least:
                raise DeclarationError(
                    f"a replay with {name}={getattr(self, name)!r} cannot be declared",
                    "it could read nothing",
                    f"Give {least} or more",
                )

    @contextlib.contextmanager
    def opened(
        self, slices: Sequence[Slice], run: Run, sessions: Sessions, say: Report
    ) -> Iterator[Opened]:
        """Read the events of `slices` once; raise before anything is changed where that cannot be done whole."""
        label = slices[0].label if len(slices) == 1 else f"{slices[0].label} to {slices[-1].name}"
        self._refuse(slices, run, label)
        table = slices[0].table
        # before the ends are fixed: whoever reads later than that has read no less
        read_at = self.now()
        with self.source.open(f"{table.qualified}-{run.backfill_id or run.run_id[:8]}") as reading:
            found = retained(slices, reading.shards, self.events)
            self._must_be_enough(found, reading, run, label)
            found.whole.sort(key=lambda s: s.window.start if s.window else read_at)
            bounds = [self._bounds(slice_) for slice_ in found.whole]
            with scratch(self.events, bounds, self.folder, self.memory_mb) as events:
                must_be_sql(events, self.events, self.transform, label)
                done = self._read(events, reading, found.whole, say)
                aside = self._judge(events, reading, sessions, table, run, label)
                keep_last(events, self.events)
                told = self._told(events, reading, done, aside)
                yield Opened(
                    [*found.whole, *found.lost], self._computing(events, found, reading, read_at, told)
                )  # fmt: skip

    def _refuse(self, slices: Sequence[Slice], run: Run, label: str) -> None:
        column = slices[0].table.slice_column
        if column is None or any(s.window is None or s.fixed for s in slices):
            raise DeclarationError(
                f"{label} cannot be replayed",
                "events are told apart by time alone, and its slices are not",
                "Partition the asset by days, weeks or hours and nothing else",
            )
        now = self.now()
        ahead = [(s, s.window.end) for s in slices if s.window and s.window.end > now]
        if ahead and "partial" not in run.allows:
            slice_, end = ahead[0]
            raise Refused(
                f"{label} was left as it was",
                f"{slice_.name} ends only at {end.isoformat()}, so its events have not all come",
                "Launch it when its time is over, or with the run tags allow=partial and reason=...",
            )

    def _must_be_enough(self, found: Retained, reading: Reading, run: Run, label: str) -> None:
        partly = "partial" in run.allows
        if found.lost and not (partly and found.whole):
            raise gone(found, self.source, reading.shards, self.events, partly=False)
        if reading.keeps_last_only and self.events.within == "slice":
            raise Refused(
                f"{label} was left as it was",
                f"{self.source.name} is compacted: it drops events of a key that came again, also in another slice",
                "Replay from a source that keeps all events, or declare the events as changes (Debezium, or"
                " Json(within='table')), of which the last one is enough",
            )

    def _bounds(self, slice_: Slice) -> tuple[Any, Any]:
        assert slice_.table.slice_column is not None
        assert slice_.window is not None
        kind = _KINDS[self.events.typed[self.events.time].type]
        return SliceColumn(self.events.time, kind, slice_.table.slice_column.zone).bounds(
            slice_.window
        )

    def _read(
        self, events: Scratch, reading: Reading, slices: Sequence[Slice], say: Report
    ) -> Pass:
        windows = [slice_.window for slice_ in slices if slice_.window is not None]
        start = min(window.start for window in windows) - self.events.early
        late = cast("Any", self.events.late)
        end = None if late is None else max(window.end for window in windows) + late
        done = read_into(events, reading, start, end, say, self.readers)
        reading.must_be_whole()
        say(
            f"{done.events:,} events of {self.source.name} were read for {len(slices)} partitions in {done.seconds:.1f} s."
        )
        return done

    def _judge(
        self, events: Scratch, reading: Reading, sessions: Sessions, table: Table, run: Run, label: str
    ) -> int:  # fmt: skip
        """Raise where the last event of a key cannot be told, or one cannot be read; return how many were put aside."""
        refuse_ambiguous(events, self.events, label)
        wrong = poison(events)
        if wrong and self.events.poison == "fail":
            raise poisoned(wrong, events, self.source, reading, label)
        if wrong:
            where = self.quarantine_schema
            put_aside(wrong, sessions.get(), events, self.source, reading, table, run, where)
        return wrong

    def _told(self, events: Scratch, reading: Reading, done: Pass, aside: int) -> dict[str, Any]:
        outside = events.fetch(
            "SELECT count(*) FROM events WHERE __slice IS NULL AND __reason IS NULL"
        )[0][0]
        spans = {shard.name: reading.span(shard) for shard in reading.shards}
        return {
            "source": self.source.name,
            "offsets": {name: list(span) for name, span in spans.items() if span},
            "events_read_by_run": done.events,
            "events_outside": int(outside),
            "events_quarantined": aside,
            **({"quarantine": self.quarantine_schema} if aside else {}),
            "events_a_second": round(done.events / done.seconds) if done.seconds else 0,
            **reading.notes(),
        }

    def _computing(
        self, events: Scratch, found: Retained, reading: Reading, read_at: datetime, told: dict[str, Any]
    ) -> Callable[[Slice], Made]:  # fmt: skip
        places = {slice_: place for place, slice_ in enumerate(found.whole)}

        def compute(slice_: Slice) -> Made:
            if slice_ not in places:
                raise gone(Retained(found.whole, [slice_], found.since), self.source, reading.shards, self.events, partly=True
                )  # fmt: skip
            place = places[slice_]
            rows = rows_of(events, self.events, place, self.transform)
            return Made(rows, read_at, {**counted(events, place), **told})

        return compute
