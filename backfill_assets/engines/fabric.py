"""A Warehouse of Microsoft Fabric: snapshot isolation, conflicts found when the second writer commits, text in UTF-8."""

from __future__ import annotations

from dataclasses import replace

from backfill_assets.engines.tsql import Traits, TSqlEngine
from backfill_assets.engines.tsql_spelling import spelling


class FabricEngine(TSqlEngine):
    """`fabric://client-id:secret@host.datawarehouse.fabric.microsoft.com/warehouse`; logins are Microsoft Entra's alone."""

    scheme = "fabric"
    warehouse = "Microsoft Fabric"
    authentication = "ActiveDirectoryServicePrincipal"  # there are no SQL logins
    spelling = replace(
        spelling(
            wide=False,  # there is no nvarchar; varchar holds UTF-8
            instants=False,  # no column is a datetimeoffset; one of instants is a datetime2 that shows UTC
            case_sensitive=True,  # the collation that a Warehouse has unless it is made with another
            index=None,  # there are none
            table_options="",
            claims_are_rows=True,
            ddl_rolls_back=True,
            view_rolls_back=False,  # in a transaction DDL of tables alone is documented
            limits=None,  # neither is a setting of the session here
            slow=None,  # there is no WAITFOR
        ),
        claims_meet_late=True,
    )
    traits = Traits(
        # SNAPSHOT is the only level there is, and any error undoes the transaction; SET XACT_ABORT is not known here
        settings="SET DATEFORMAT ymd",
        locks=False,  # sp_getapplock is not there
        waits=False,  # nobody waits: of two who update one table, the second to commit is undone
        stage="CREATE TABLE {name} AS {ctes}{sql}",
    )
