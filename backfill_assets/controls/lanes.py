"""Which lane a run belongs to: `live`, which never waits for a backfill, or `backfill`, which is capped.

A run is told apart by what it is about, not by who launches it: the single-run path of the UI and
`dagster job launch` make runs over old partitions that Dagster itself does not call a backfill.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from typing import Any, cast, get_args

import dagster as dg

from backfill_assets.errors import DeclarationError
from backfill_assets.writing.run import Lane

LANE = "lane"
LANE_WHY = "lane_why"
PRIORITY = "dagster/priority"
BACKFILL = "dagster/backfill"
PARTITION = "dagster/partition"
RANGE = ("dagster/asset_partition_range_start", "dagster/asset_partition_range_end")
_DAY = re.compile(r"\d{4}-\d{2}-\d{2}(-\d{2}:\d{2})?")


@dataclass(frozen=True)
class Placed:
    """A lane, and in words why a run got it."""

    lane: Lane
    why: str


def lane_of(
    tags: Mapping[str, str], ended: datetime | None, *, now: datetime, live_days: int
) -> Placed:
    """Return the lane of a run with these `tags`; raise `DeclarationError` for a lane that there is not.

    `ended` is the end of the oldest partition that the run is about (aware), None where it has no time.
    The tag `lane` moves a run into the backfill lane and never out of it.
    """
    told = tags.get(LANE)
    if told is not None and told not in get_args(Lane):
        raise DeclarationError(
            f"the run asks for the lane {told!r}",
            "there is no such lane",
            f"Give the tag {LANE} as {' or '.join(get_args(Lane))}, or leave it out",
        )
    if BACKFILL in tags:
        return Placed("backfill", f"it belongs to the backfill {tags[BACKFILL]}")
    start, end = (tags.get(edge) for edge in RANGE)
    if start and end and start != end:
        return Placed("backfill", f"it spans several partitions, {start} to {end}")
    if ended is not None and now - ended > timedelta(days=live_days):
        days = (now - ended).days
        return Placed(
            "backfill", f"its partition ended {days} days ago, and live reaches back {live_days}"
        )
    if told == "backfill":
        return Placed("backfill", f"its launcher gave it the tag {LANE}")
    return Placed("live", "it is about the newest partitions, or about none")


def lane_by_tags(tags: Mapping[str, str], live_days: int, ended: datetime | None = None) -> Lane:
    """Return the lane of a run that is under way.

    The coordinator has asked the workspace and left its stamp; only without one the partitions are looked at again,
    by `ended`, the end of the oldest, or where nobody knows that by what their keys are named after.
    """
    if LANE_WHY in tags and tags.get(LANE) in get_args(Lane):
        return cast("Lane", tags[LANE])
    oldest = ended or end_by_name(partitions_of(tags))
    return lane_of(tags, oldest, now=datetime.now(timezone.utc), live_days=live_days).lane


def partitions_of(tags: Mapping[str, str]) -> tuple[str, ...]:
    """Return the partition key of a run, or the first and the last one of its range, as its tags give them."""
    if tags.get(PARTITION):
        return (tags[PARTITION],)
    return tuple(dict.fromkeys(tags[edge] for edge in RANGE if tags.get(edge)))


def end_by_name(keys: Sequence[str]) -> datetime | None:
    """Return the end of the oldest of `keys` that is named after a day or an hour in UTC; None without any.

    For runs whose partitions nobody can ask for their windows. A key of two dimensions is looked through.
    """
    found = [match.group() for key in keys if (match := _DAY.search(key))]
    ends: list[datetime] = []
    for name in found:
        hourly = len(name) > len("2026-05-01")
        try:
            day, hour = name[:10], name[11:] if hourly else "00:00"
            begin = datetime.fromisoformat(f"{day}T{hour}:00+00:00")
        except ValueError:
            continue
        ends.append(begin + timedelta(hours=1 if hourly else 24))
    return min(ends, default=None)


def oldest_end(definition: Any, keys: Sequence[str]) -> datetime | None:
    """Return the end (aware) of the oldest of `keys` as their definition cuts them; None where they have no time."""
    if not keys:
        return None
    if isinstance(definition, dg.MultiPartitionsDefinition):
        for dimension in definition.partitions_defs:
            if isinstance(dimension.partitions_def, dg.TimeWindowPartitionsDefinition):
                split = (definition.get_partition_key_from_str(str(key)) for key in keys)
                names = [key.keys_by_dimension[dimension.name] for key in split]
                return oldest_end(dimension.partitions_def, names)
        return None
    if not isinstance(definition, dg.TimeWindowPartitionsDefinition):
        return None
    # ranges come in order, and keys that are named in order sort in order
    return min(definition.time_window_for_partition_key(key).end for key in {min(keys), keys[0]})
