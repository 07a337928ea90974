"""Which lane a run belongs to: `live`, which never waits for a backfill, or `backfill`, which is capped.

A run is told apart by what it is about, not by who launches it: the single-run path of the UI and
`dagster job launch` make runs over old partitions that Dagster itself does not call a backfill.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from typing import cast, get_args

import dagster as dg

from backfill_assets.errors import DeclarationError
from backfill_assets.partition_keys import end_by_name
from backfill_assets.writing.run import Lane

LANE = "lane"
LANE_WHY = "lane_why"
CONTROL = "control"  # on the jobs of people, which wait in no lane
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
    """Return the lane of a run that is under way; `ended` is the end of its oldest partition, where anybody knows it.

    The coordinator has asked the workspace and left its stamp. Without `ended` that is believed, and without a stamp
    the names of the keys are. A launcher outside the queue can write a stamp too, so that none makes old partitions live.
    """
    stamp = tags.get(LANE) if LANE_WHY in tags else None
    if stamp == "backfill" or (stamp == "live" and ended is None):
        return cast("Lane", stamp)
    oldest = ended or end_by_name(partitions_of(tags))
    return lane_of(tags, oldest, now=datetime.now(timezone.utc), live_days=live_days).lane


def lane_under_way(
    instance: dg.DagsterInstance, run: dg.DagsterRun, live_days: int, ended: datetime | None
) -> Lane:
    """Return the lane of a launched run: one that was live when it was launched stays so, however long it waits."""
    lane = lane_by_tags(run.tags, live_days, ended)
    if lane == "live" or run.tags.get(LANE) != "live" or LANE_WHY not in run.tags:
        return lane
    record = instance.get_run_record_by_id(run.run_id)
    if record is None:
        return lane
    return lane_of(run.tags, ended, now=record.create_timestamp, live_days=live_days).lane


def partitions_of(tags: Mapping[str, str]) -> tuple[str, ...]:
    """Return the partition key of a run, or the first and the last one of its range, as its tags give them."""
    if tags.get(PARTITION):
        return (tags[PARTITION],)
    return tuple(dict.fromkeys(tags[edge] for edge in RANGE if tags.get(edge)))
