"""The two paths: the old job, with the three faults that it had until version 2, and its replacement."""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import ROUND_HALF_EVEN, Decimal
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

from backfill_assets.slice import Slice

if TYPE_CHECKING:
    import pandas as pd

# what version 1 of the old job did: half a cent always up, days of the office's own clock, rows without a country lost
FAULTS = frozenset({"rounding", "zone", "nulls"})
COLUMNS = ["order_date", "order_id", "ordered_at", "customer_id", "country", "amount"]


def new(slice_: Slice, orders: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of a slice: days of UTC, half a cent to the even one, as the books have it."""
    return _of_days(slice_, orders, "UTC", _half_even)


def legacy(
    slice_: Slice, orders: pd.DataFrame, faults: frozenset[str] = frozenset()
) -> pd.DataFrame:
    """Return the rows as the old job makes them, with any of `FAULTS`."""
    if "nulls" in faults:  # a join on the country, at some time in its life
        orders = orders.dropna(subset=["country"])
    zone = "Europe/Berlin" if "zone" in faults else "UTC"
    return _of_days(slice_, orders, zone, _half_up if "rounding" in faults else _half_even)


def legacy_today(slice_: Slice, orders: pd.DataFrame) -> pd.DataFrame:
    """Return the rows by version 2 of the old job, which has none of the faults."""
    return legacy(slice_, orders)


def _of_days(
    slice_: Slice, orders: pd.DataFrame, zone: str, rounded: Callable[[Decimal], Decimal]
) -> pd.DataFrame:
    assert slice_.window is not None
    days = set(slice_.window.days("UTC"))
    clock = ZoneInfo(zone)
    orders = orders.assign(
        order_date=[at.astimezone(clock).date() for at in orders["ordered_at"]],
        amount=[rounded(net) for net in orders["net"]],
    )
    return orders.loc[orders["order_date"].isin(sorted(days)), COLUMNS]


def _half_even(net: Decimal) -> Decimal:
    return net.quantize(Decimal("0.01"), ROUND_HALF_EVEN)


def _half_up(net: Decimal) -> Decimal:
    # with floats, which hold few halves of a cent exactly, so that some go down
    return Decimal(math.floor(float(net) * 100 + 0.5)).scaleb(-2)
