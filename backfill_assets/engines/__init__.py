"""Engines: one small module per warehouse behind one protocol. `open_engine(url)` chooses by scheme."""

from __future__ import annotations

from importlib import import_module
from typing import cast

from backfill_assets.engines.protocol import Claim, Engine, Report, Session, Spelling
from backfill_assets.errors import DeclarationError, without_secrets

__all__ = ["Claim", "Engine", "Report", "Session", "Spelling", "open_engine"]

# scheme -> where its engine lives; imported when a URL asks for it
ENGINES = {
    "bigquery": "backfill_assets.engines.bigquery:BigQueryEngine",
    "databricks": "backfill_assets.engines.databricks:DatabricksEngine",
    "duckdb": "backfill_assets.engines.duckdb:DuckDBEngine",
    "postgresql": "backfill_assets.engines.postgres:PostgresEngine",
    "postgres": "backfill_assets.engines.postgres:PostgresEngine",
    "snowflake": "backfill_assets.engines.snowflake:SnowflakeEngine",
    "sqlserver": "backfill_assets.engines.sqlserver:SqlServerEngine",
    "synapse": "backfill_assets.engines.synapse:SynapseEngine",
    "fabric": "backfill_assets.engines.fabric:FabricEngine",
}


def open_engine(url: str) -> Engine:
    """Return the engine of a warehouse URL; nothing is connected to and no driver imported yet."""
    scheme, separator, _ = url.partition("://")
    if not separator or scheme not in ENGINES:
        raise DeclarationError(
            # without a scheme nobody knows where its password ends, so none of it is shown
            f"the warehouse URL {without_secrets(url)!r} cannot be used"
            if separator
            else "the warehouse URL cannot be used",
            f"it begins with none of {', '.join(f'{name}://' for name in ENGINES)}",
            "Write for example duckdb:///warehouse.duckdb, postgresql://user@host/database,"
            " snowflake://user@account/database or bigquery://project/dataset",
        )
    module, _, name = ENGINES[scheme].partition(":")
    return cast("Engine", getattr(import_module(module), name)(url))
