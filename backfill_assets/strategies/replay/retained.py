"""Which slices a source still holds all events of: asked of every shard, before anything is deleted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from backfill_assets.errors import Refused
from backfill_assets.slice import Slice
from backfill_assets.strategies.replay.events import Events
from backfill_assets.strategies.replay.source import EventSource, Shard
from backfill_assets.window import zone_named


class EventsGone(Refused):
    """The source no longer holds all events of a slice."""

    launch_again = False


@dataclass(frozen=True)
class Retained:
    """The slices that can be replayed whole, those that cannot, and since when (aware) nothing is missing."""

    whole: list[Slice]
    lost: list[Slice]
    since: datetime | None


def retained(slices: Sequence[Slice], shards: Sequence[Shard], events: Events) -> Retained:
    """Tell the slices apart by what every shard still holds; `events.early` counts to what a slice needs."""
    known = [shard.since for shard in shards if shard.since is not None]
    since = max(known, default=None)
    whole, lost = list[Slice](), list[Slice]()
    for slice_ in slices:
        needed = slice_.window.start - events.early if slice_.window else None
        is_lost = since is not None and (needed is None or needed < since)
        (lost if is_lost else whole).append(slice_)
    return Retained(whole, lost, since)


def gone(found: Retained, source: EventSource, shards: Sequence[Shard], events: Events, *, partly: bool) -> EventsGone:  # fmt: skip
    """Return the refusal of the slices that are lost: which shard, since when, how large the gap is, and what can be done."""
    assert found.since is not None
    first, last = found.lost[0], found.lost[-1]
    needed = (first.window.start if first.window else found.since) - events.early
    short = sorted(
        ((s.since, s) for s in shards if s.since is not None and s.since > needed),
        key=lambda pair: pair[0],
        reverse=True,
    )
    told = "; ".join(
        f"{source.shard_word} {s.name} {_begins(s, since, needed)}" for since, s in short[:3]
    )
    more = f" and {len(short) - 3} more" if len(short) > 3 else ""
    can = f"The first whole one that can be replayed is {_first_whole(found, events)}: launch from there"
    if partly:
        can = "Those that are whole are filled"
    elif any(s.window and first.window and s.window.start >= first.window.start for s in found.whole):  # fmt: skip
        can += ", or launch with the run tags allow=partial and reason=... to fill those that are whole"
    what = (
        f"{first.label} was left as it was"
        if first is last
        else f"{first.label} to {last.name} were left as they were"
    )
    return EventsGone(
        what,
        f"{source.name} no longer holds all their events, which are needed from {needed.isoformat()} on: {told}{more}",
        f"{can}; what is gone has to come from elsewhere (recompute it from a table that kept it)",
    )


def _first_whole(found: Retained, events: Events) -> str:
    """Return the first slice that is whole: one of the run, or else by the calendar, the first to begin late enough."""
    lost, since = found.lost[0], found.since
    assert lost.window is not None
    assert since is not None
    for slice_ in found.whole:
        if slice_.window is not None and slice_.window.start > lost.window.start:
            return slice_.name
    column = lost.table.slice_column
    zone = zone_named(column.zone if column is not None else "UTC")
    begin = (since + events.early).astimezone(zone)
    if len(lost.window.days(zone.key)) != 1 or not lost.window.is_whole_days(zone.key):
        return f"that which begins at {begin.isoformat()} or after it"
    midnight = begin.replace(hour=0, minute=0, second=0, microsecond=0)
    return (midnight if midnight == begin else midnight + timedelta(days=1)).date().isoformat()


def _begins(shard: Shard, since: datetime, needed: datetime) -> str:
    begins = "has nothing left" if shard.is_empty else f"begins at {since.isoformat()}"
    return f"{begins}, a gap of {since - needed}"
