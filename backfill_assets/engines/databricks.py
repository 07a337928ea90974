"""Databricks by URL, and how its SQL spells what engines spell differently. What a session does is `databricks_session.py`'s.

There is no transaction over several statements that every workspace has. A slice is replaced by one statement,
`INSERT INTO ... REPLACE WHERE`, which is one commit of the Delta table; what stands before and after it is
`writing/replacing.py`'s.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import TYPE_CHECKING

from backfill_assets.engines.databricks_url import options_of
from backfill_assets.engines.limited import Limited
from backfill_assets.engines.protocol import Report, Spelling, silence
from backfill_assets.engines.texts import unpadded
from backfill_assets.engines.transactions import opened

if TYPE_CHECKING:
    from backfill_assets.engines.databricks_session import DatabricksSession

SPELLING = Spelling(
    dialect="databricks",
    identity="SELECT current_metastore(), current_catalog()",
    literals={
        "date": "DATE '{}'",
        "timestamp": "TIMESTAMP_NTZ '{}'",
        "timestamptz": "TIMESTAMP '{}'",
        "int_yyyymmdd": "{}",
        "iso_text": "'{}'",
    },
    # each value is hashed apart, with the hash so far as its seed, so that no two rows are spelled alike; a NULL
    # would leave the seed as it is
    row_hash="xxhash64({columns})",
    column_hash={
        "": "coalesce(concat('=', CAST({column} AS STRING)), '')",
        "binary": "coalesce(concat('=', hex({column})), '')",
    },
    hash_joint=", ",
    # a sum of hashes leaves BIGINT after a few rows
    hash_sum="CAST(coalesce(sum(CAST({hash} AS DECIMAL(38, 0))), 0) AS STRING)",
    try_cast="try_cast({value} AS {type})",
    case_sensitive=False,
    longest_name=255,
    # what Delta takes in a column's name only after a change of the table, and Unity Catalog in no name of a table
    forbidden=" ,;{}()\n\t=./",
    default_schema="default",
    text_type="STRING",
    count_rows_apart="count(DISTINCT struct({columns}))",
    epoch_seconds="unix_micros(CAST({column} AS TIMESTAMP)) / 1000000",
    day_of_instant="to_date(from_utc_timestamp({column}, {zone}))",
    who_am_i="SELECT current_user()",
    claims_are_rows=True,
    # by which Delta itself refuses the second of two that write one slice, also where it was empty
    create_table="CREATE TABLE IF NOT EXISTS {name} ({columns})"
    " TBLPROPERTIES ('delta.isolationLevel' = 'Serializable')",
    # there is no IF NOT EXISTS here: a twin's column is found to be there
    add_column="ALTER TABLE {table} ADD COLUMNS ({name} {type})",
    grants={
        "rows": "GRANT SELECT, MODIFY ON TABLE {table} TO `{role}`",
        "stage": "GRANT USE SCHEMA, CREATE TABLE ON SCHEMA {database}.backfill TO `{role}`",
        "make": "GRANT USE SCHEMA, CREATE TABLE ON SCHEMA {database}.{schema} TO `{role}`",
        "schema": "GRANT USE CATALOG, CREATE SCHEMA ON CATALOG {database} TO `{role}`",
    },
    wide={"integer": "BIGINT", "decimal": "DECIMAL(38, {scale})", "float": "DOUBLE"},
    canonical={
        "integer": "CAST({column} AS STRING)",
        "decimal": unpadded("CAST({column} AS STRING)", "rtrim({letter}, {text})"),
        "float": "CAST({column} AS STRING)",
        "text": "{column}",
        "date": "CAST({column} AS STRING)",
        "timestamp": "CAST({column} AS STRING)",
        # a session's zone is UTC
        "timestamptz": "CAST(CAST({column} AS TIMESTAMP_NTZ) AS STRING)",
        "boolean": "CAST({column} AS STRING)",
        "binary": "lower(hex({column}))",
    },
    trim_end="rtrim({letter}, {text})",
    trim_blanks="rtrim(' ', {text})",
    text_number="CAST(conv(substr(md5({text}), 1, 15), 16, 10) AS BIGINT)",
    replace="INSERT INTO {table} REPLACE WHERE {condition} {query}",
    replace_all="INSERT OVERWRITE {table} {query}",
    as_of="{table} VERSION AS OF {version}",
    # CREATE OR REPLACE drops the view first, and what was granted on it
    replace_view="ALTER VIEW {view} AS {query}",
)


class DatabricksEngine(Limited):
    """`databricks://token:dapi...@host/catalog/schema?http_path=/sql/1.0/warehouses/...`, with a few options.

    Options: `lock_wait` (600), `statement_timeout` (the warehouse's), `claim_lease` (1800: how long a claim outlives a
    writer that died) and `connect_wait` (300: how long to wait for a warehouse that starts) in seconds; `stage_schema`
    (backfill), where stages and claims are; `warehouse_size`, by which DBUs are estimated; `profile`, of
    ~/.databrickscfg. Without credentials in the URL those of the environment are taken.
    """

    def __init__(self, url: str) -> None:
        self.options = options_of(url)
        self.shown = self.options.shown
        self.spelling = replace(SPELLING, default_schema=self.options.schema)

    @property
    def place(self) -> str:
        """The catalog."""
        return self.options.catalog

    @property
    def address(self) -> str:
        """The workspace; another `http_path` of it is another warehouse to compute on, and the same data."""
        return self.options.host.lower()

    def _limit(self, limits: Mapping[str, float]) -> None:
        self.options = replace(self.options, **limits)

    def session(
        self, *, who: str = "", read_only: bool = False, report: Report | None = None
    ) -> AbstractContextManager[DatabricksSession]:
        """Connect, and disconnect at the end."""
        from backfill_assets.engines.databricks_session import DatabricksSession

        return opened(DatabricksSession(self, who, read_only, report or silence))
