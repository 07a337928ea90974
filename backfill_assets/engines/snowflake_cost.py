"""What work costs on Snowflake: credits, estimated by the size of the warehouse, or read from the account's history."""

from __future__ import annotations

import re

from backfill_assets.engines.protocol import Session
from backfill_assets.engines.sql import text
from backfill_assets.errors import MissingRight, MissingTable

# a standard warehouse's credits an hour; each size costs twice the one before
CREDITS_PER_HOUR = {
    "X-Small": 1.0,
    "Small": 2.0,
    "Medium": 4.0,
    "Large": 8.0,
    "X-Large": 16.0,
    "2X-Large": 32.0,
    "3X-Large": 64.0,
    "4X-Large": 128.0,
    "5X-Large": 256.0,
    "6X-Large": 512.0,
}
_HISTORY = "snowflake.account_usage.query_attribution_history"


def size_named(size: str) -> str | None:
    """Return the size as Snowflake shows it, however it is written: `XSMALL`, `x-small`, `X-Small`."""
    plain = re.sub(r"[^a-z0-9]", "", size.lower())
    plain = {"xxlarge": "2xlarge", "xxxlarge": "3xlarge"}.get(plain, plain)
    names = {re.sub(r"[^a-z0-9]", "", name.lower()): name for name in CREDITS_PER_HOUR}
    return names.get(plain)


def estimated(size: str | None, seconds: float) -> float | None:
    """Return the credits of `seconds` on a warehouse of `size` that nobody else uses; None without a size."""
    name = size_named(size) if size else None
    return round(CREDITS_PER_HOUR[name] * seconds / 3600, 6) if name else None


def attributed(session: Session, backfill_id: str) -> float | None:
    """Return the credits that the account attributes to a backfill's statements by their QUERY_TAG.

    None where the role may not read the account's usage, or nothing is there yet. The service takes up to eight hours to fill that view, and
    counts neither idle time of a warehouse nor statements shorter than about 100 ms.
    """
    spelling = session.spelling
    try:
        found = session.fetch(
            f"SELECT sum(credits_attributed_compute) FROM {_HISTORY}"
            f" WHERE try_parse_json(query_tag):backfill::VARCHAR = {text(spelling, backfill_id)}"
        )
    except (MissingRight, MissingTable):
        return None
    return None if found[0][0] is None else float(found[0][0])
