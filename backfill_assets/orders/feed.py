"""The shop's orders, made up and the same every time: some at midnight, some without a country, some that end in half a cent."""

from __future__ import annotations

import random
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from backfill_assets.slice import Slice

if TYPE_CHECKING:
    import pandas as pd

A_DAY = 400
_COUNTRIES = ("DE", "FR", "US", "JP")
Order = dict[str, Any]


def orders_of(day: date) -> list[Order]:
    """Return the orders of a UTC day; `net` has three places."""
    # random() is the one generator method whose values are promised to stay the same between versions
    draw = random.Random(f"orders of {day}").random
    midnight = datetime.combine(day, time(), timezone.utc)
    found: list[Order] = []
    for number in range(A_DAY + int(draw() * 50)):
        at = midnight + timedelta(microseconds=int(draw() * 86_400_000_000))
        found.append(_order(day, number, at, draw))
    found[0]["ordered_at"] = midnight  # exactly at midnight
    found[1]["ordered_at"] = midnight + timedelta(days=1, microseconds=-1)
    found[2]["country"] = None
    found[3]["net"] = Decimal("10.125")  # half a cent
    return found


def read(slice_: Slice) -> pd.DataFrame:
    """Return the orders of a slice's days, and of the day before and after them, as an old job reads them."""
    import pandas as pd

    assert slice_.window is not None
    days = slice_.window.days("UTC")
    around = [days[0] - timedelta(days=1), *days, days[-1] + timedelta(days=1)]
    return pd.DataFrame([order for day in around for order in orders_of(day)])


def _order(day: date, number: int, at: datetime, draw: Any) -> Order:
    no_country = draw() < 0.01
    country = _COUNTRIES[int(draw() * len(_COUNTRIES))]
    return {
        "order_id": day.toordinal() * 10_000 + number,
        "ordered_at": at,
        "customer_id": 1 + int(draw() * 900),
        "country": None if no_country else country,
        "net": Decimal(1000 + int(draw() * 90_000)) / 1000,
    }
