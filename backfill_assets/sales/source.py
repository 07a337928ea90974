"""The sample's source, `staging.sales_raw`: made up, the same on every machine, and awkward on purpose."""

from __future__ import annotations

import random
from collections.abc import Iterator
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from backfill_assets.engines import Engine, Report
from backfill_assets.sales.tables import FIRST_DAY, HOLIDAY
from backfill_assets.writing.source import replace_source

if TYPE_CHECKING:
    import pyarrow as pa

LAST_DAY = date(2026, 6, 30)

COLUMNS = {
    "sale_id": "BIGINT",
    "event_at": "TIMESTAMPTZ",
    "customer_id": "BIGINT",
    "product_id": "BIGINT",
    "qty": "BIGINT",
    "unit_price": "DECIMAL(18,2)",
    "status": "TEXT",
    "loaded_at": "TIMESTAMPTZ",
}


def _at(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=timezone.utc)


# sale_id, event_at, status, loaded_at: each is there because backfills lose or double such rows
AWKWARD = {
    "exactly_at_midnight": (1, _at("2026-05-10 00:00:00"), "confirmed", _at("2026-05-10 00:04:00")),
    "one_microsecond_before_midnight": (
        2,
        _at("2026-05-10 23:59:59.999999"),
        "confirmed",
        _at("2026-05-11 00:01:00"),
    ),
    "at_the_end_of_the_month": (
        3,
        _at("2026-05-31 23:59:59.999999"),
        "confirmed",
        _at("2026-06-01 00:01:00"),
    ),
    "late_by_three_days": (4, _at("2026-05-12 15:00:00"), "confirmed", _at("2026-05-15 08:00:00")),
    "late_by_three_weeks": (5, _at("2026-05-04 09:30:00"), "confirmed", _at("2026-05-25 06:00:00")),
    "cancelled_next_day": (6, _at("2026-05-12 16:00:00"), "cancelled", _at("2026-05-13 09:00:00")),
    "still_pending": (7, _at("2026-05-13 10:00:00"), "pending", _at("2026-05-13 10:05:00")),
}


def days() -> Iterator[date]:
    """Yield the days of the source, first to last."""
    for number in range((LAST_DAY - FIRST_DAY).days + 1):
        yield FIRST_DAY + timedelta(days=number)


def sales_of(day: date) -> list[tuple[Any, ...]]:
    """Return the rows whose `event_at` lies in the UTC `day`: about 2,000, fewer on Sundays."""
    if day == HOLIDAY:
        return []
    # random() is the one generator method whose values are promised to stay the same between versions
    draw = random.Random(f"sales of {day}").random
    midnight = datetime(day.year, day.month, day.day, tzinfo=timezone.utc)
    rows: list[tuple[Any, ...]] = []
    for number in range(1200 if day.weekday() == 6 else 1900 + int(draw() * 250)):
        event_at = midnight + timedelta(microseconds=1 + int(draw() * 86_399_999_998))
        product = 1 + int(draw() * 40)
        status = (
            "confirmed" if (fate := draw()) < 0.92 else "cancelled" if fate < 0.97 else "pending"
        )
        sale_id = day.toordinal() * 10_000 + number
        loaded_at = event_at + timedelta(seconds=30 + int(draw() * 600))
        rows.append(
            _row(
                sale_id,
                event_at,
                1 + int(draw() * 500),
                product,
                1 + int(draw() * 5),
                status,
                loaded_at,
            )
        )
    for sale_id, event_at, status, loaded_at in AWKWARD.values():
        if event_at.date() == day:
            rows.append(_row(sale_id, event_at, 77, 7, 1, status, loaded_at))
    return rows


def _row(
    sale_id: int,
    event_at: datetime,
    customer: int,
    product: int,
    qty: int,
    status: str,
    loaded_at: datetime,
):
    price = Decimal(199 + product * 137) / 100
    return (sale_id, event_at, customer, product, qty, price, status, loaded_at)


def table_of(rows: list[tuple[Any, ...]]) -> pa.Table:
    """Return rows as Arrow, instants in UTC."""
    import pyarrow as pa

    instant = pa.timestamp("us", tz="UTC")
    types = [
        pa.int64(),
        instant,
        pa.int64(),
        pa.int64(),
        pa.int64(),
        pa.decimal128(18, 2),
        pa.string(),
        instant,
    ]
    columns = list(zip(*rows, strict=True)) or [()] * len(types)
    return pa.table(
        [pa.array(c, t) for c, t in zip(columns, types, strict=True)], names=list(COLUMNS)
    )


def prepare(engine: Engine, report: Report | None = None) -> int:
    """Make or complete `staging.sales_raw` and return its rows; one that is complete is left alone."""
    import pyarrow as pa

    data = pa.concat_tables(table_of(sales_of(day)) for day in days())
    with engine.session(who="the sample's source", report=report) as session:
        replace_source(session, "sales_raw", COLUMNS, data, "sum(sale_id), max(loaded_at)")
    return data.num_rows
