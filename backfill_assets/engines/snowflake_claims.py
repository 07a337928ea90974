"""Claims on Snowflake: a small table beside each data table, whose rows a writer updates in its transaction.

A transaction that has updated rows keeps every other UPDATE of them waiting until it ends, and Snowflake has only READ
COMMITTED: whoever waited sees afterwards what the first one committed. So an UPDATE of the rows that stand for the days
of a window is the claim, an UPDATE of all rows that of the whole table, and any two that share a day share a row. The
rows are all made with the table, outside any transaction and before the first claim: a row that is inserted later
would lie in a micro-partition of its own, which somebody who claimed the whole table before would not hold.
`claim_rows.py` says which rows stand for what.

On a real account the lock is coarser than the row: UPDATE, DELETE and MERGE of one table wait for each other whatever
rows they touch. Writers of two days of one table therefore take turns for the length of a transaction; since each data
table has a claims table of its own, writers of different tables do not.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from backfill_assets.engines.claim_rows import all_rows, buckets_of, listed_buckets
from backfill_assets.engines.protocol import Claim, Spelling
from backfill_assets.engines.sql import text


def making(spelling: Spelling, claims: str, table: str) -> str:
    """Return the statement that makes the claims table with all its rows at once."""
    return (
        f"CREATE TABLE IF NOT EXISTS {claims} COMMENT = {text(spelling, _about(table))}"
        " AS SELECT column1 AS bucket, CAST(NULL AS VARCHAR) AS holder, CAST(NULL AS TIMESTAMP_NTZ) AS claimed_at"
        f" FROM (VALUES {all_rows()}) AS buckets (column1)"
    )


def _about(table: str) -> str:
    # some clients split statements at quotes in comments, and JSON can do without
    return json.dumps({"claims_of": table}).replace("'", "\\u0027")


def claiming(spelling: Spelling, claims: str, claim: Claim) -> str:
    """Return the one statement that takes every row of a claim, or waits: no two writers wait for each other."""
    return (
        f"UPDATE {claims} SET holder = {text(spelling, claim.holder)}, claimed_at = SYSDATE()"
        f" WHERE bucket IN ({listed_buckets(claim)})"
    )


def note(claim: Claim, table: str, who: str, now: datetime) -> str:
    """Return what the comment of a stage tells: who is about to write what.

    What a transaction writes nobody sees before it commits, so that the holder of a claim is told here.
    """
    told = {
        "who": who,
        "table": table,
        "buckets": buckets_of(claim),
        "slice": claim.label,
        "at": now.isoformat(timespec="seconds"),
    }
    return json.dumps(told).replace("'", "\\u0027")


def holders(comments: Sequence[Any], claim: Claim, table: str, who: str) -> str:
    """Return by their stages who may hold what `claim` waits for; there may be others who wait as well."""
    wanted = set(buckets_of(claim))
    found: dict[str, str] = {}
    for comment in comments:
        try:
            told = json.loads(comment)
            meets = told["table"] == table and wanted & set(told["buckets"])
            if meets and told["who"] != who:
                found[str(told["who"])] = min(str(told["at"]), found.get(told["who"], "9999"))
        except (TypeError, ValueError, KeyError):
            continue  # somebody else's comment
    return " or ".join(sorted(found, key=lambda name: found[name])) or "another writer"
