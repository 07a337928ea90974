"""Claims on Databricks: leases on rows of a small Delta table beside each data table.

There is no lock that ends with a transaction, since there is no transaction. So a claim is a row that says who holds a
day and until when. One UPDATE takes all rows of a claim that are free or expired; a Delta table takes one of two UPDATEs
that change the same row, and refuses the other. Who gets only some of them gives them back and tries again, so that
nobody holds one while he waits for another. `claim_rows.py` says which rows stand for what.

A holder renews its lease while it lives, and gives its rows back. One that dies leaves them until the lease is over, and others are told who and until when.
"""

from __future__ import annotations

from backfill_assets.engines.claim_rows import all_rows, listed_buckets
from backfill_assets.engines.protocol import Claim, Spelling
from backfill_assets.engines.sql import text


def making(spelling: Spelling, claims: str, table: str) -> str:
    """Return the statement that makes the claims table with all its rows at once."""
    about = text(spelling, f"Claims of {table}")
    return (
        f"CREATE TABLE IF NOT EXISTS {claims} COMMENT {about}"
        " TBLPROPERTIES ('delta.isolationLevel' = 'Serializable')"
        " AS SELECT bucket, CAST(NULL AS STRING) AS token, CAST(NULL AS STRING) AS holder,"
        " CAST(NULL AS STRING) AS slice, CAST(NULL AS TIMESTAMP) AS held_until"
        f" FROM VALUES {all_rows()} AS buckets (bucket)"
    )


def taking(spelling: Spelling, claims: str, claim: Claim, token: str, lease: float) -> str:
    """Return the one statement that takes every row of a claim that nobody holds."""
    mine = text(spelling, token)
    return (
        f"UPDATE {claims} SET token = {mine}, holder = {text(spelling, claim.holder)},"
        f" slice = {text(spelling, claim.label)}, held_until = current_timestamp() + INTERVAL {round(lease)} SECONDS"
        f" WHERE bucket IN ({listed_buckets(claim)})"
        f" AND (held_until IS NULL OR held_until < current_timestamp() OR token = {mine})"
    )


def renewing(spelling: Spelling, claims: str, token: str, lease: float) -> str:
    """Return the statement that makes what this holder has its own for another lease; nothing of what others have taken."""
    return (
        f"UPDATE {claims} SET held_until = current_timestamp() + INTERVAL {round(lease)} SECONDS"
        f" WHERE token = {text(spelling, token)}"
    )


def giving_back(spelling: Spelling, claims: str, token: str) -> str:
    """Return the statement that frees whatever this holder has."""
    return (
        f"UPDATE {claims} SET token = NULL, holder = NULL, slice = NULL, held_until = NULL"
        f" WHERE token = {text(spelling, token)}"
    )


def holding(spelling: Spelling, claims: str, claim: Claim, token: str) -> str:
    """Return the query for who else holds a row of a claim: (holder, slice, until)."""
    return (
        f"SELECT DISTINCT holder, slice, held_until FROM {claims} WHERE bucket IN ({listed_buckets(claim)})"
        f" AND held_until >= current_timestamp() AND token <> {text(spelling, token)} ORDER BY held_until"
    )
