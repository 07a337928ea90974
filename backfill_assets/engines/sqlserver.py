"""SQL Server and Azure SQL Database: application locks for claims, READ COMMITTED, all or nothing by XACT_ABORT."""

from __future__ import annotations

from backfill_assets.engines.tsql import Traits, TSqlEngine
from backfill_assets.engines.tsql_spelling import spelling


class SqlServerEngine(TSqlEngine):
    """`sqlserver://user:password@host:1433/database`, for SQL Server from 2016 on, Azure SQL Database and Managed Instance."""

    scheme = "sqlserver"
    warehouse = "SQL Server"
    spelling = spelling(
        wide=True,
        instants=True,
        # most databases take Amount and amount for one column; where one does not, twins are refused, and nothing lost
        case_sensitive=False,
        index=(
            "IF NOT EXISTS (SELECT 1 FROM sys.indexes WHERE name = {name_text} AND object_id = OBJECT_ID({table_text}))"
            " CREATE INDEX {name} ON {table} ({columns})"
        ),
        table_options="",
        claims_are_rows=False,
        ddl_rolls_back=True,
        view_rolls_back=True,
        limits="SELECT CONCAT(@@LOCK_TIMEOUT, ' ms'), 'kept by the driver'",
        slow="WAITFOR DELAY '00:01:00'; SELECT 1",
    )
    traits = Traits(
        settings=(
            # any error undoes the whole transaction, not its statement alone
            "SET XACT_ABORT ON; SET NOCOUNT OFF; SET DATEFORMAT ymd;"
            # a server's `user options` may turn it on: BEGIN would then open two, and COMMIT end one
            " SET IMPLICIT_TRANSACTIONS OFF;"
            # a text that is too long is an error, and not cut off
            " SET ANSI_WARNINGS ON; SET ARITHABORT ON;"
            # statements after the claim have to see what its last holder committed
            " SET TRANSACTION ISOLATION LEVEL READ COMMITTED;"
            # somebody who takes no claims is waited for as long as somebody who does (error 1222)
            " SET LOCK_TIMEOUT {lock_wait};"
            # whoever waits for this session reads here who it is
            " SET CONTEXT_INFO 0x{who}"
        ),
        locks=True,
        waits=True,
        stage="{ctes}SELECT * INTO {name} FROM (\n{sql}\n) AS stage_rows",
    )
