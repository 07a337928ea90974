"""The example's events, made the same every time, and what should come of them by a plain loop of its own."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Any

from backfill_assets.payments.tables import FIRST_DAY, LAST_DAY

SHARDS = 3
_A_DAY = 800
_CURRENCIES = ("EUR", "EUR", "USD", "JPY")

Event = dict[str, Any]


def days() -> list[date]:
    """Return the days of which there are events."""
    return [FIRST_DAY + timedelta(days=n) for n in range((LAST_DAY - FIRST_DAY).days + 1)]


@cache
def events() -> tuple[tuple[int, Event], ...]:
    """Return each event with its shard, in the order in which they were written down.

    Payments are told once, some again and again, some corrected, some voided; some are written down up to 40 minutes
    after they happened; some happen at midnight, or a microsecond before it.
    """
    return tuple(sorted(_all(), key=lambda pair: pair[1]["written_at"]))


def write(folder: Path) -> int:
    """Write the events below `folder`, a file for each shard and day, and return how many there are."""
    files: dict[tuple[int, str], list[str]] = {}
    count = 0
    for shard, event in events():
        files.setdefault((shard, event["written_at"][:10]), []).append(json.dumps(event))
        count += 1
    for (shard, day), lines in files.items():
        place = folder / str(shard)
        place.mkdir(parents=True, exist_ok=True)
        new = place / f".{day}.new"
        new.write_text("\n".join(lines) + "\n")
        new.rename(place / f"{day}.jsonl")
    return count


def rows(day: date, *, wrong_yen: bool = False) -> list[dict[str, Any]]:
    """Return what the table should hold of a day; `wrong_yen` as the transform had it that took yen for having parts."""
    last: dict[int, Event] = {}
    for _, event in events():
        if event["paid_at"][:10] == day.isoformat():
            before = last.get(event["payment_id"])
            if before is None or event["version"] >= before["version"]:
                last[event["payment_id"]] = event
    return [
        {
            "paid_on": day,
            "payment_id": e["payment_id"],
            "currency": e["currency"],
            "amount": _amount(e, wrong_yen),
        }
        for e in last.values()
        if e["op"] != "voided"
    ]


def _amount(event: Event, wrong_yen: bool) -> Decimal:
    whole = event["currency"] == "JPY" and not wrong_yen
    return Decimal(event["minor"]) / (1 if whole else 100)


def _all() -> Iterator[tuple[int, Event]]:
    chance = random.Random(7)
    number = 0
    for day in days():
        begin = datetime.combine(day, time(), timezone.utc)
        for n in range(_A_DAY):
            number += 1
            paid = begin + timedelta(seconds=n * 86_400 / _A_DAY, microseconds=0 if n == 0 else -1)
            yield from _told(number, paid, chance)


def _told(number: int, paid: datetime, chance: random.Random) -> Iterator[tuple[int, Event]]:
    """Yield the events of one payment: all in one shard, as a broker does by key."""
    first = {
        "payment_id": number,
        "version": 1,
        "op": "paid",
        "paid_at": paid.isoformat(),
        "currency": chance.choice(_CURRENCIES),
        "minor": chance.randrange(100, 100_000),
        "written_at": (paid + timedelta(seconds=chance.choice((1, 2, 3, 2400)))).isoformat(),
    }
    told = [first]
    if number % 10 == 0:
        told.append(first | {"written_at": _later(first, 30)})  # told twice
    if number % 25 == 0:
        told.append(first | {"version": 2, "op": "corrected", "minor": first["minor"] + 100, "written_at": _later(first, 600)})  # fmt: skip
    if number % 40 == 0:
        told.append(first | {"version": 3, "op": "voided", "written_at": _later(first, 900)})
    for event in told:
        yield number % SHARDS, event


def _later(event: Event, seconds: int) -> str:
    return (datetime.fromisoformat(event["written_at"]) + timedelta(seconds=seconds)).isoformat()
