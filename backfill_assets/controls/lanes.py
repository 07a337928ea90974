"""Which lane a run belongs to: `live`, which never waits for a backfill, or `backfill`, which is capped.

A run is told apart by what it is about, not by who launches it: the single-run path of the UI and
`dagster job launch` make runs over old partitions that Dagster itself does not call a backfill.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from typing import cast, get_args

from backfill_assets.errors import DeclarationError
from backfill_assets.partition_keys import end_by_name
from backfill_assets.writing.run import Lane

LANE = "lane"
LANE_WHY = "lane_why"
PRIORITY = "dagster/priority"
BACKFILL = "dagster/backfill"
PARTITION = "dagster/partition"
RANGE: tuple[str, str] = (
    "dagster/asset_partition_range_start",
    "dagster/asset_partition_range_end",
)


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


def in_backfill_lane(tags: Mapping[str, str]) -> bool:
    """Tell whether a launched run is in the backfill lane, stamped or not."""
    return tags.get(LANE) == "backfill" or BACKFILL in tags


def partitions_of(tags: Mapping[str, str]) -> tuple[str, ...]:
    """Return the partition key of a run, or the first and the last one of its range, as its tags give them."""
    if tags.get(PARTITION):
        return (tags[PARTITION],)
    return tuple(dict.fromkeys(tags[edge] for edge in RANGE if tags.get(edge)))
