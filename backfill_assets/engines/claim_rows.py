"""What claims that are rows have in common: a table of a few rows beside each data table, made with all of them at once.

A day is one of `BUCKETS` rows by its number, so that any two windows that share a day share a row, and two far days that
share one only wait in vain; the whole table is all of them.
"""

from __future__ import annotations

import hashlib
import re

from backfill_assets.engines.protocol import Claim, Spelling
from backfill_assets.engines.sql import quoted

BUCKETS = 32


def resolved(relation: str, quote: str, database: str, schema: str) -> str:
    """Return the full name of a relation that is quoted by `quote`, so that `"T"` and `"PUBLIC"."T"` are one claim."""
    parts = re.findall(f"{quote}(?:[^{quote}]|{quote}{quote})*{quote}", relation)
    home = [quote + part.replace(quote, quote * 2) + quote for part in (database, schema)]
    return ".".join([*home[: 3 - len(parts)], *parts])


def claims_table(spelling: Spelling, stage_schema: str, table: str) -> str:
    """Return the SQL name of the claims table of `table`, a name from `resolved`."""
    name = f"slice_claims_{hashlib.md5(table.encode(), usedforsecurity=False).hexdigest()[:20]}"
    return f"{quoted(spelling, stage_schema)}.{quoted(spelling, name)}"


def all_rows() -> str:
    """Return the rows of a new claims table, to stand behind VALUES."""
    return ", ".join(f"({bucket})" for bucket in range(BUCKETS))


def buckets_of(claim: Claim) -> list[int]:
    """Return the rows that stand for a claim."""
    if claim.days is None:
        return list(range(BUCKETS))
    return sorted({day.toordinal() % BUCKETS for day in claim.days})


def listed_buckets(claim: Claim) -> str:
    """Return the same, to stand behind IN."""
    return ", ".join(map(str, buckets_of(claim)))
