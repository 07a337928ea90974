"""Claims on BigQuery: one row per table, updated in the transaction, which no two transactions can both commit.

BigQuery has no lock to wait for. It gives a transaction a snapshot, and where two of them change rows of one table at
the same time, it aborts the second. Every writer of a table therefore updates the one row of the table's claim table
first: of two whose transactions overlap, at most one commits, whatever rows their windows hold, and so also where a
slice was empty and both DELETE nothing. The other one is aborted at that first statement, begins again and tries until
`lock_wait` is over.

Days make no difference here: BigQuery compares tables, and the DELETE of two days of one table would meet there even
if their claims did not. So one row is enough, and a claim on the whole table and one on a day exclude each other too.
The claim table lies beside the table, so that all its writers find the same one whatever their URLs say.

Who holds a claim cannot be read in the row, since nobody sees what is not committed. So a holder says it in
`backfill_holders`, outside its transaction, by appending a row, which disturbs nobody; rows there go by themselves.
The row names the BigQuery session too: that of a writer that was killed stays open until BigQuery, or somebody who reads
the message, ends it.
"""

from __future__ import annotations

from backfill_assets.engines.protocol import Claim, Spelling
from backfill_assets.engines.sql import quoted, text

HOLDERS = "backfill_holders"
_KEPT_DAYS = 2


def parts_of(relation: str, project: str, dataset: str) -> tuple[str, str, str]:
    """Return project, dataset and table of a quoted relation, filled from those of the URL."""
    parts = [part.strip("`") for part in relation.split("`.`")]
    whole = [*(project, dataset)[: 3 - len(parts)], *parts]
    return whole[0], whole[1], whole[2]


def claim_table(spelling: Spelling, parts: tuple[str, str, str]) -> str:
    """Return the quoted name of the table whose one row is the claim of a table."""
    return beside(spelling, parts, f"backfill_claim_{parts[2]}")


def beside(spelling: Spelling, parts: tuple[str, str, str], name: str) -> str:
    """Return the quoted name of another table in the dataset of a table."""
    return f"`{parts[0]}`.{quoted(spelling, parts[1])}.{quoted(spelling, name)}"


def making(spelling: Spelling, parts: tuple[str, str, str]) -> list[str]:
    """Return the statements that make what claims on a table need; each is one step, so a twin makes it the same."""
    return [
        f"CREATE TABLE IF NOT EXISTS {claim_table(spelling, parts)} AS"
        " SELECT 0 AS turn, CAST(NULL AS STRING) AS holder, CAST(NULL AS STRING) AS slice,"
        " CURRENT_TIMESTAMP() AS claimed_at",
        f"CREATE TABLE IF NOT EXISTS {beside(spelling, parts, HOLDERS)}"
        " (relation STRING, holder STRING, slice STRING, session STRING, claimed_at TIMESTAMP)"
        f" PARTITION BY DATE(claimed_at) OPTIONS (partition_expiration_days = {_KEPT_DAYS})",
    ]


def claiming(spelling: Spelling, parts: tuple[str, str, str], claim: Claim) -> str:
    """Return the first statement of a transaction."""
    return (
        f"UPDATE {claim_table(spelling, parts)} SET turn = turn + 1, holder = {text(spelling, claim.holder)},"
        f" slice = {text(spelling, claim.label)}, claimed_at = CURRENT_TIMESTAMP() WHERE TRUE"
    )


def announcing(spelling: Spelling, parts: tuple[str, str, str], claim: Claim, session: str) -> str:
    """Return what a holder says outside its transaction."""
    values = (text(spelling, value) for value in (parts[2], claim.holder, claim.label, session))
    return (
        f"INSERT INTO {beside(spelling, parts, HOLDERS)} (relation, holder, slice, session, claimed_at)"
        f" VALUES ({', '.join(values)}, CURRENT_TIMESTAMP())"
    )


def holding(spelling: Spelling, parts: tuple[str, str, str]) -> str:
    """Return the query for who said last that it holds the claim of a table: (holder, slice, session)."""
    return (
        f"SELECT holder, slice, session FROM {beside(spelling, parts, HOLDERS)}"
        f" WHERE claimed_at >= TIMESTAMP_SUB(CURRENT_TIMESTAMP(), INTERVAL {_KEPT_DAYS} DAY)"
        f" AND relation = {text(spelling, parts[2])} ORDER BY claimed_at DESC LIMIT 1"
    )
