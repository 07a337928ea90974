"""Claims on PostgreSQL: advisory locks, shared on the table and exclusive on each day, freed with the transaction.

Locks are named by the table that a name resolves to, so that `fct` and `public.fct` are one table's claim, and a
partition's claim is its whole table's.
"""

from __future__ import annotations

from typing import Any

from backfill_assets.engines.protocol import Claim, Spelling
from backfill_assets.engines.sql import text
from backfill_assets.engines.wording import BENEATH, NAME_IT

_APPLICATION = "backfill_assets "
# pg_class.relkind -> why a claim on it would not hold, and what to do
KINDS_BEYOND_A_CLAIM = {
    "v": (f"it is a view, and {BENEATH}", NAME_IT),
    "m": ("it is a materialized view, which only REFRESH writes", NAME_IT),
    "f": (
        "it is a foreign table or has a foreign partition, and another server commits apart from this one",
        "Load the table through the other server's own URL",
    ),
}


def claiming(spelling: Spelling, claim: Claim, patience: int, after: str) -> str:
    """Return the statements that wait `patience` ms for every lock; `after` is the statement limit from then on.

    Locks are taken from left to right: the table's, then each day's in order, so that no two writers wait
    for each other.
    """
    if claim.days is None:
        locks = ["pg_advisory_xact_lock(hashtextextended(t, 0))"]
    else:
        locks = ["pg_advisory_xact_lock_shared(hashtextextended(t, 0))"]
        locks += [
            f"pg_advisory_xact_lock(hashtextextended(t || '|{day}', 0))"
            for day in sorted(claim.days)
        ]
    who = f"{_APPLICATION}run {claim.holder}".encode()[:63].decode(errors="ignore")
    return (
        f"SET LOCAL application_name = {text(spelling, who)}; SET LOCAL statement_timeout = {patience};"
        # rows that a policy hides would survive the DELETE: with this, the server refuses instead of hiding
        " SET LOCAL row_security = off;"
        f" SELECT kind, {', '.join(locks)} FROM ({_resolved(spelling, claim)}) AS claimed;"
        f" SET LOCAL statement_timeout = {after}"
    )


def claimed_kind(found: Any) -> str | None:
    """Return `relkind` of what was claimed, from the results of `claiming`; None where it is not there."""
    while found.description is None and found.nextset():
        pass
    row = found.fetchone() if found.description else None
    return row[0] if row else None


def holding(spelling: Spelling, claim: Claim) -> str:
    """Return the query for who holds what `claim` waits for: (application name, process id)."""
    keys = [
        "(hashtextextended(t, 0))",
        *(f"(hashtextextended(t || '|{day}', 0))" for day in claim.days or ()),
    ]
    # a whole table waits for everybody who shares it, a day only for those who have the table for themselves
    modes = "l.mode = 'ExclusiveLock'" if claim.days is not None else "TRUE"
    return (
        f"SELECT a.application_name, a.pid FROM ({_resolved(spelling, claim)}) AS claimed,"
        f" LATERAL (VALUES {', '.join(keys)}) AS k (key)"
        " JOIN pg_locks AS l ON l.classid = CAST((k.key >> 32) & 4294967295 AS oid)"
        " AND l.objid = CAST(k.key & 4294967295 AS oid) AND l.objsubid = 1"
        " JOIN pg_stat_activity AS a ON a.pid = l.pid"
        f" WHERE l.locktype = 'advisory' AND l.granted AND {modes} AND l.pid <> pg_backend_pid()"
        " AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())"
        " LIMIT 1"
    )


def named(holder: tuple[Any, ...] | None) -> str:
    """Return what `holding` found, as a person would say it."""
    if holder is None:
        return "another writer"
    name = str(holder[0] or "")
    if name.startswith(_APPLICATION):
        return name[len(_APPLICATION) :]
    return f"{name or 'a session'} (process {holder[1]})"


def _resolved(spelling: Spelling, claim: Claim) -> str:
    """Return the query for the name `t` that locks are made of, and the `kind` of what it names."""
    relation = text(spelling, claim.relation)
    foreign = (
        "EXISTS (SELECT FROM pg_partition_tree(c.oid) AS part JOIN pg_catalog.pg_class AS p ON p.oid = part.relid"
        " WHERE p.relkind = 'f')"
    )
    return (
        f"SELECT coalesce(n.nspname || '.' || r.relname, asked) AS t,"
        f" CASE WHEN c.relkind = 'p' AND {foreign} THEN 'f' ELSE CAST(c.relkind AS text) END AS kind"
        f" FROM (SELECT CAST({relation} AS text) AS asked) AS a"
        " LEFT JOIN pg_catalog.pg_class AS c ON c.oid = to_regclass(asked)"
        " LEFT JOIN pg_catalog.pg_class AS r ON r.oid = coalesce(pg_partition_root(c.oid), c.oid)"
        " LEFT JOIN pg_catalog.pg_namespace AS n ON n.oid = r.relnamespace OFFSET 0"
    )
