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
    )
    traits = Traits(
        settings=(
            "SET XACT_ABORT ON",  # any error undoes the whole transaction, not its statement alone
            "SET NOCOUNT OFF",
            "SET DATEFORMAT ymd",
            "SET ANSI_WARNINGS ON",  # a text that is too long is an error, and not cut off
            "SET ARITHABORT ON",
            "SET TRANSACTION ISOLATION LEVEL READ COMMITTED",
        ),
        locks=True,
        waits=True,
        stage="{ctes}SELECT * INTO {name} FROM (\n{sql}\n) AS stage_rows",
    )
