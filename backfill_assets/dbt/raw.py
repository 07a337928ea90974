"""The dbt sample's sources `raw.orders`, `raw.customers` and `raw.products`: made up, the same on every machine.

Customers are changed in place, as a shop's system does: `set_customers` makes the table what it said on a day.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from backfill_assets.engines import Engine, Report, Session
from backfill_assets.engines.sql import create_schema, create_table

if TYPE_CHECKING:
    import pyarrow as pa

FIRST_DAY = date(2026, 3, 1)
LAST_DAY = date(2026, 5, 31)
CUSTOMERS, PRODUCTS = 60, 20
_COUNTRIES = ("PL", "DE", "FR", "SE")

COLUMNS: Mapping[str, Mapping[str, str]] = {
    "orders": {
        "order_id": "BIGINT",
        "customer_id": "BIGINT",
        "product_id": "BIGINT",
        "ordered_at": "TIMESTAMPTZ",
        "quantity": "BIGINT",
        "status": "TEXT",
        "loaded_at": "TIMESTAMPTZ",
    },
    "customers": {
        "customer_id": "BIGINT",
        "country": "TEXT",
        "segment": "TEXT",
        "updated_at": "TIMESTAMPTZ",
    },
    "products": {"product_id": "BIGINT", "category": "TEXT", "unit_price": "DECIMAL(18,2)"},
}


def days() -> Iterator[date]:
    """Yield the days of the orders, first to last."""
    for number in range((LAST_DAY - FIRST_DAY).days + 1):
        yield FIRST_DAY + timedelta(days=number)


def moves() -> dict[int, tuple[datetime, str]]:
    """Return when in April which customers move, and where to: every fifth of them."""
    found: dict[int, tuple[datetime, str]] = {}
    for customer in range(1, CUSTOMERS + 1, 5):
        at = datetime(2026, 4, 1 + customer % 28, 12, tzinfo=timezone.utc)
        found[customer] = at, _COUNTRIES[(customer + 1) % len(_COUNTRIES)]
    return found


def country_at(customer: int, instant: datetime) -> str:
    """Return where the customer lived at `instant`."""
    move = moves().get(customer)
    if move is not None and instant >= move[0]:
        return move[1]
    return _COUNTRIES[customer % len(_COUNTRIES)]


def customers_at(instant: datetime) -> list[tuple[Any, ...]]:
    """Return the rows of `raw.customers` as the shop's system showed them at `instant`."""
    rows: list[tuple[Any, ...]] = []
    for customer in range(1, CUSTOMERS + 1):
        changed = datetime(2026, 1, 1, tzinfo=timezone.utc)
        if customer in moves() and instant >= moves()[customer][0]:
            changed = moves()[customer][0]
        segment = "business" if customer % 3 == 0 else "private"
        rows.append((customer, country_at(customer, instant), segment, changed))
    return rows


def orders_of(day: date, count: int = 200) -> list[tuple[Any, ...]]:
    """Return the rows whose `ordered_at` lies in the UTC `day`, the last of them exactly at its beginning."""
    # random() is the one generator method whose values are promised to stay the same between versions
    draw = random.Random(f"orders of {day}").random
    midnight = datetime(day.year, day.month, day.day, tzinfo=timezone.utc)
    rows: list[tuple[Any, ...]] = []
    for number in range(count):
        at = (
            midnight
            if number == count - 1
            else midnight + timedelta(microseconds=int(draw() * 86_400_000_000))
        )
        status = "confirmed" if draw() < 0.95 else "cancelled"
        late = timedelta(days=3) if draw() < 0.01 else timedelta(seconds=30 + int(draw() * 600))
        rows.append(
            (
                day.toordinal() * 100_000 + number,
                1 + int(draw() * CUSTOMERS),
                1 + int(draw() * PRODUCTS),
                at,
                1 + int(draw() * 5),
                status,
                at + late,
            )
        )
    return rows


def products() -> list[tuple[Any, ...]]:
    """Return the rows of `raw.products`."""
    return [
        (n, ("books", "toys", "tools")[n % 3], Decimal(199 + n * 137) / 100)
        for n in range(1, PRODUCTS + 1)
    ]


def prepare(engine: Engine, report: Report | None = None) -> int:
    """Make the three tables, customers as they were on the first day, and return how many orders there are."""
    orders = [row for day in days() for row in orders_of(day)]
    first = datetime(FIRST_DAY.year, FIRST_DAY.month, FIRST_DAY.day, tzinfo=timezone.utc)
    with engine.session(who="the dbt sample's sources", report=report) as session:
        session.define(create_schema(session.spelling, "raw"))
        for name, rows in (
            ("orders", orders),
            ("products", products()),
            ("customers", customers_at(first)),
        ):
            _replace(session, name, rows)
    return len(orders)


def set_customers(engine: Engine, instant: datetime, report: Report | None = None) -> None:
    """Change `raw.customers` in place into what it said at `instant`."""
    with engine.session(who="the shop's system", report=report) as session:
        _replace(session, "customers", customers_at(instant))


def _replace(session: Session, name: str, rows: list[tuple[Any, ...]]) -> None:
    columns = COLUMNS[name]
    listed = ", ".join(f"{column} {kind}" for column, kind in columns.items())
    session.define(create_table(session.spelling, f"raw.{name}", listed))
    stage = session.stage_arrow(f"raw_{name}", table_of(name, rows))
    names = ", ".join(columns)
    with session.transaction():
        session.execute(f"DELETE FROM raw.{name}")
        session.execute(f"INSERT INTO raw.{name} ({names}) SELECT {names} FROM {stage}")
    session.drop_stage(f"raw_{name}")


def table_of(name: str, rows: list[tuple[Any, ...]]) -> pa.Table:
    """Return rows of one of the tables as Arrow, instants in UTC."""
    import pyarrow as pa

    types = {
        "BIGINT": pa.int64(),
        "TEXT": pa.string(),
        "TIMESTAMPTZ": pa.timestamp("us", tz="UTC"),
        "DECIMAL(18,2)": pa.decimal128(18, 2),
    }
    columns = list(zip(*rows, strict=True)) or [()] * len(COLUMNS[name])
    arrays = [
        pa.array(c, types[kind]) for c, kind in zip(columns, COLUMNS[name].values(), strict=True)
    ]
    return pa.table(arrays, names=list(COLUMNS[name]))
