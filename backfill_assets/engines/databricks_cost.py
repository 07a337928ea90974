"""What work costs on Databricks: DBUs, estimated by the size of the SQL warehouse."""

from __future__ import annotations

import re

# DBUs an hour of one cluster of a SQL warehouse, of whatever type
DBU_PER_HOUR = {
    "2X-Small": 4.0,
    "X-Small": 6.0,
    "Small": 12.0,
    "Medium": 24.0,
    "Large": 40.0,
    "X-Large": 80.0,
    "2X-Large": 144.0,
    "3X-Large": 272.0,
    "4X-Large": 528.0,
}


def size_named(size: str) -> str | None:
    """Return the size as Databricks shows it, however it is written: `2XSMALL`, `x-small`, `X-Small`."""
    names = {_plain(name): name for name in DBU_PER_HOUR}
    return names.get(_plain(size))


def estimated(size: str, seconds: float) -> float | None:
    """Return the DBUs of `seconds` on a warehouse of `size` that nobody else uses; None without a size."""
    name = size_named(size) if size else None
    return round(DBU_PER_HOUR[name] * seconds / 3600, 6) if name else None


def _plain(size: str) -> str:
    return re.sub(r"[^a-z0-9]", "", size.lower())
