"""A dedicated SQL pool of Azure Synapse: T-SQL without application locks, and with transactions that readers may look into."""

from __future__ import annotations

from backfill_assets.engines.tsql import Traits, TSqlEngine
from backfill_assets.engines.tsql_spelling import spelling

# a columnstore takes no text without a bound, and is slow for tables of few rows
_PLAIN = " WITH (HEAP, DISTRIBUTION = ROUND_ROBIN)"


class SynapseEngine(TSqlEngine):
    """`synapse://user:password@workspace.sql.azuresynapse.net/pool`."""

    scheme = "synapse"
    warehouse = "Azure Synapse"
    spelling = spelling(
        wide=True,
        instants=True,
        case_sensitive=False,
        index=None,  # an index pays for one row among millions; the audit is small beside the pool
        table_options=_PLAIN,
        claims_are_rows=True,
        ddl_rolls_back=False,  # DDL inside a transaction is error 226
        view_rolls_back=False,
        limits=None,  # neither is a setting of the session here
        slow=None,  # there is no WAITFOR
    )
    traits = Traits(
        settings="SET XACT_ABORT ON; SET DATEFORMAT ymd",  # no other isolation level can be set here
        locks=False,  # sp_getapplock is not there
        waits=True,  # an update keeps the table's only update lock until its transaction ends
        stage=f"CREATE TABLE {{name}}{_PLAIN} AS {{ctes}}{{sql}}",
        table_options=_PLAIN,
        # without it the pool reads uncommitted rows, by everybody
        sees_halves=(
            "SELECT CASE WHEN is_read_committed_snapshot_on = 1 THEN 0 ELSE 1 END FROM sys.databases"
            " WHERE name = DB_NAME()"
        ),
    )
