"""A Warehouse of Microsoft Fabric: snapshot isolation, conflicts found when the second writer commits, text in UTF-8."""

from __future__ import annotations

from backfill_assets.engines.tsql import Traits, TSqlEngine
from backfill_assets.engines.tsql_spelling import spelling


class FabricEngine(TSqlEngine):
    """`fabric://client-id:secret@host.datawarehouse.fabric.microsoft.com/warehouse?authentication=ActiveDirectoryServicePrincipal`."""

    scheme = "fabric"
    warehouse = "Microsoft Fabric"
    spelling = spelling(
        wide=False,  # there is no nvarchar; varchar holds UTF-8
        instants=False,  # there is no datetimeoffset; a column of instants is a datetime2 that shows UTC
        case_sensitive=True,  # the collation that a Warehouse has unless it is made with another
        index=None,  # there are none
        table_options="",
    )
    traits = Traits(
        settings=("SET XACT_ABORT ON", "SET DATEFORMAT ymd"),  # SNAPSHOT is the only level there is
        locks=False,  # sp_getapplock is not there
        waits=False,  # nobody waits: of two who update one table, the second to commit is undone
        stage="CREATE TABLE {name} AS {ctes}{sql}",
    )
