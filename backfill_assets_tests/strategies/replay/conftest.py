"""A broker, a warehouse, and the orders of a week as events."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from backfill_assets.strategies.replay import Events, replay_asset
from backfill_assets.strategies.replay.source import EventSource
from backfill_assets.table import SliceColumn, Table
from backfill_assets_tests.io_managers.conftest import Warehouse
from backfill_assets_tests.kafka_broker import Broker, broker

FIRST = datetime(2026, 5, 1, tzinfo=timezone.utc)
DAYS = dg.DailyPartitionsDefinition("2026-05-01", end_date="2026-05-11")
ORDERS = Table(
    "analytics.fct_orders",
    slice_column=SliceColumn("order_date", "date"),
    unique_key=("order_id",),
)
EVENTS = Events(
    fields={"order_id": "BIGINT", "ordered_at": "TIMESTAMPTZ", "amount": "DECIMAL(18, 2)"},
    time="ordered_at",
    key=("order_id",),
)
TO_ROWS = "SELECT CAST(ordered_at AS DATE) AS order_date, order_id, amount FROM events"
ALL = "SELECT CAST(order_date AS VARCHAR), order_id, CAST(amount AS VARCHAR) FROM analytics.fct_orders ORDER BY 2"


@pytest.fixture(scope="session")
def kafka() -> Iterator[Broker]:
    with broker() as running:
        yield running


@pytest.fixture
def topic(kafka: Broker) -> str:
    return kafka.topic(f"orders-{uuid.uuid4().hex[:8]}")


@pytest.fixture
def warehouse(request: pytest.FixtureRequest, tmp_path: Path) -> Warehouse:
    if request.param == "postgres":
        return Warehouse(request.getfixturevalue("postgres").url)
    return Warehouse(f"duckdb:///{tmp_path / 'warehouse.duckdb'}")


def orders_from(
    source: EventSource, events: Events = EVENTS, **options: Any
) -> dg.AssetsDefinition:
    """Return the asset of orders, replayed from `source`."""
    given: dict[str, Any] = {"transform": TO_ROWS, "partitions_def": DAYS, "table": ORDERS}
    return replay_asset(
        ["analytics", "fct_orders"], source=source, events=events, **given | options
    )


def at(day: int, hour: float = 12) -> datetime:
    """Return an hour of a day of May 2026, UTC."""
    return FIRST + timedelta(days=day - 1, hours=hour)


def ms(moment: datetime) -> int:
    return round(moment.timestamp() * 1000)


def order(number: int, moment: datetime, amount: str = "1.00", **more: Any) -> dict[str, Any]:
    """Return an event: an order as the shop tells of it."""
    return {"order_id": number, "ordered_at": moment.isoformat(), "amount": amount, **more}


def sent(number: int, moment: datetime, amount: str = "1.00", *, written: datetime | None = None, shard: int | None = None, **more: Any):  # fmt: skip
    """Return an event as `Broker.send` takes it; `written` is when it reached the broker."""
    place = number % 3 if shard is None else shard
    return (place, ms(written or moment), str(number), order(number, moment, amount, **more))
