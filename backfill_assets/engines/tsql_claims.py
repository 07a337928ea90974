"""Claims on T-SQL warehouses: application locks where there are some, a row in a table of its own where there are none.

An application lock is shared on the table and exclusive on each day, as on PostgreSQL, and ends with the transaction.
A claim row is one row of one small table per table that is written; whoever updates it first is the only writer.
"""

from __future__ import annotations

import hashlib

from backfill_assets.engines.protocol import Claim, Spelling
from backfill_assets.engines.sql import create_table, quoted, text
from backfill_assets.engines.tsql_policies import catalog_of

STAGES = "backfill"


def locking(spelling: Spelling, claim: Claim, milliseconds: int) -> str:
    """Return the batch that takes every lock within `milliseconds` altogether; it answers (code, lock that failed).

    The day is counted inside the batch, in order, so that no two writers wait for each other. Locks belong to the
    database in which the table is, so that writers who connect to different ones meet.
    """
    lock = f"EXEC @got = {catalog_of(claim.relation)}sys.sp_getapplock @Resource = @lock"
    owner = "@LockOwner = 'Transaction', @LockTimeout = @left"
    shared = "Exclusive" if claim.days is None else "Shared"
    left = "SET @left = CASE WHEN SYSUTCDATETIME() < @until THEN DATEDIFF(millisecond, SYSUTCDATETIME(), @until) ELSE 0 END;"
    days = ""
    if claim.days is not None:
        first, last = min(claim.days), max(claim.days)
        days = (
            f" DECLARE @day date = '{first.isoformat()}';"
            f" WHILE @got >= 0 AND @day <= '{last.isoformat()}' BEGIN"
            f" {left} SET @lock = {_prefix(spelling, claim)} + CONVERT(nvarchar(10), @day, 23);"
            f" {lock}, @LockMode = 'Exclusive', {owner}; SET @day = DATEADD(day, 1, @day); END;"
        )
    return (
        f"SET NOCOUNT ON; DECLARE @got int, @left int, @lock nvarchar(255) = {_prefix(spelling, claim)} + N'table',"
        f" @until datetime2(3) = DATEADD(millisecond, {milliseconds}, SYSUTCDATETIME());"
        f" {left} {lock}, @LockMode = '{shared}', {owner};{days}"
        " SELECT @got, @lock; SET NOCOUNT OFF"
    )


def holding(spelling: Spelling, lock: str) -> str:
    """Return the query for who holds an application lock; it needs the right to see the server's state."""
    # a description shows the first 32 characters of the lock's name, in brackets
    return (
        "SELECT TOP (1) CAST(s.context_info AS varchar(128)), s.session_id FROM sys.dm_tran_locks AS l"
        " JOIN sys.dm_exec_sessions AS s ON s.session_id = l.request_session_id"
        " WHERE l.resource_type = 'APPLICATION' AND l.request_status = 'GRANT' AND l.request_session_id <> @@SPID"
        f" AND CHARINDEX({text(spelling, f'[{lock[:32]}]')}, l.resource_description) > 0"
    )


def claim_table(spelling: Spelling, claim: Claim, database: str) -> str:
    """Return the table that holds the claim of `claim`'s table: `t`, `dbo.t` and `shop.dbo.t` have one."""
    from sqlglot import exp

    table = exp.to_table(claim.relation, dialect="tsql")
    name = "|".join((table.catalog or database, table.db or spelling.default_schema, table.name))
    name = name if spelling.case_sensitive else name.lower()
    digest = hashlib.sha256(name.encode()).hexdigest()[:32]
    return f"{quoted(spelling, STAGES)}.{quoted(spelling, f'claim_{digest}')}"


def making_claim(spelling: Spelling, claim: Claim, relation: str) -> list[str]:
    """Return the statements that make the claim's table and a row in it; two rows from a lost race do no harm."""
    kind = spelling.text_type
    return [
        create_table(spelling, relation, f"table_name {kind}, holder {kind} NULL"),
        f"IF NOT EXISTS (SELECT 1 FROM {relation})"
        f" INSERT INTO {relation} (table_name) VALUES ({text(spelling, claim.relation)})",
    ]


def taking(spelling: Spelling, claim: Claim, relation: str) -> str:
    """Return the statement that makes this transaction the only writer: no other can update the row beside it."""
    return f"UPDATE {relation} SET holder = {text(spelling, claim.holder)}"


def _prefix(spelling: Spelling, claim: Claim) -> str:
    """Return what the names of all locks of a table begin with: by its id, so that `t` and `dbo.t` are one."""
    relation = text(spelling, claim.relation)
    return f"N'bf|' + coalesce(CONVERT(nvarchar(12), OBJECT_ID({relation})), LEFT({relation}, 200)) + N'|'"
