"""A run is live only if it is about the newest partitions; whoever launches it, old partitions are a backfill."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

import dagster as dg
import pytest

from backfill_assets.controls.lanes import lane_of
from backfill_assets.errors import DeclarationError
from backfill_assets.partition_keys import end_by_name, oldest_end

NOW = datetime(2026, 5, 12, 9, 30, tzinfo=timezone.utc)


def lane(ended: datetime | None = None, live_days: int = 3, **tags: str) -> str:
    names = {"backfill": "dagster/backfill", "start": "dagster/asset_partition_range_start"}
    names["end"] = "dagster/asset_partition_range_end"
    given = {names.get(key, key): value for key, value in tags.items()}
    return lane_of(given, ended, now=NOW, live_days=live_days).lane


@pytest.mark.parametrize(
    ("told", "expected"),
    [
        ({}, "live"),
        ({"backfill": "abc"}, "backfill"),
        ({"start": "2026-05-10", "end": "2026-05-11"}, "backfill"),
        ({"start": "2026-05-11", "end": "2026-05-11"}, "live"),
        ({"ended": NOW - timedelta(days=2)}, "live"),
        ({"ended": NOW - timedelta(days=3)}, "live"),
        ({"ended": NOW - timedelta(days=3, seconds=1)}, "backfill"),
        ({"ended": NOW - timedelta(hours=1), "live_days": 0}, "backfill"),
        ({"lane": "backfill"}, "backfill"),
        ({"lane": "live"}, "live"),
        ({"lane": "live", "backfill": "abc"}, "backfill"),
        ({"lane": "live", "ended": NOW - timedelta(days=90)}, "backfill"),
    ],
)
def test_the_lane_of_a_run(told: dict, expected: str) -> None:
    assert lane(**told) == expected


def test_a_lane_that_there_is_not_is_refused_in_a_sentence() -> None:
    with pytest.raises(
        DeclarationError, match=r"the lane 'fast': there is no such lane\. Give .* live or backfill"
    ):
        lane(lane="fast")


@pytest.mark.parametrize(
    ("keys", "end"),
    [
        ([], None),
        (["eu"], None),
        (["2026-05-10"], "2026-05-11T00:00"),
        (["2026-05-10-23:00"], "2026-05-11T00:00"),
        (["2026-05-10|eu"], "2026-05-11T00:00"),
        (["eu|2026-05-10"], "2026-05-11T00:00"),
        (["2026-05-10", "2026-05-01"], "2026-05-02T00:00"),
        (["2026-99-99"], None),
        (["20260510"], "2026-05-11T00:00"),
        (["2026/05/10"], "2026-05-11T00:00"),
        (["2026-05-10T23:00"], "2026-05-11T00:00"),
        (["2026-04"], "2026-05-01T00:00"),
        (["2026-12|eu"], "2027-01-01T00:00"),
        (["sku-2020-01-01"], None),
        (["2020-01-01-final"], None),
        (["12345678"], None),
    ],
)
def test_a_partition_that_nobody_can_ask_about_is_dated_by_its_name(
    keys: list[str], end: str | None
) -> None:
    found = end_by_name(keys)
    assert found == (datetime.fromisoformat(f"{end}+00:00") if end else None)


def test_a_month_is_dated_by_its_end_and_not_by_the_day_that_it_is_named_after() -> None:
    months = dg.MonthlyPartitionsDefinition("2026-01-01", timezone="Europe/Berlin")
    ended = oldest_end(months, ["2026-04-01"])
    assert ended == datetime.fromisoformat("2026-05-01T00:00+02:00")
    assert (
        lane_of({}, ended, now=datetime(2026, 5, 2, tzinfo=timezone.utc), live_days=3).lane
        == "live"
    )


def test_the_oldest_partition_decides_in_two_dimensions_too() -> None:
    both = dg.MultiPartitionsDefinition(
        {
            "region": dg.StaticPartitionsDefinition(["eu", "us"]),
            "day": dg.DailyPartitionsDefinition("2026-05-01"),
        }
    )
    keys = [
        dg.MultiPartitionKey({"region": "eu", "day": "2026-05-09"}),
        dg.MultiPartitionKey({"region": "us", "day": "2026-05-02"}),
    ]
    assert oldest_end(both, keys) == datetime(2026, 5, 3, tzinfo=timezone.utc)
    assert oldest_end(dg.StaticPartitionsDefinition(["eu"]), ["eu"]) is None
