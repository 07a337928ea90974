{# Generated from backfill_assets/writing and engines by `make dbt`; what is changed here is lost. #}
{% macro backfill_spelled() %}{% do return(adapter.dispatch('backfill_spelled')()) %}{% endmacro %}

{% macro duckdb__backfill_spelled() %}{% do return({
  "dialect": "duckdb",
  "literals": {
    "date": "DATE '{}'",
    "timestamp": "TIMESTAMP '{}'",
    "timestamptz": "TIMESTAMPTZ '{}'",
    "int_yyyymmdd": "{}",
    "iso_text": "'{}'"
  },
  "text_type": "TEXT",
  "case_sensitive": false,
  "folds_upper": false,
  "escapes_backslashes": false,
  "default_schema": "main",
  "create_schema": "CREATE SCHEMA IF NOT EXISTS <<schema>>",
  "row_hash": "hash({columns})",
  "column_hash": {
    "": "{column}"
  },
  "hash_joint": ", ",
  "hash_sum": "CAST(coalesce(sum({hash}), 0) AS VARCHAR)",
  "day_of_instant": "CAST({column} AT TIME ZONE {zone} AS DATE)",
  "audit": {
    "definition": [
      "CREATE SCHEMA IF NOT EXISTS <<audit>>",
      "CREATE TABLE IF NOT EXISTS <<audit>>.\"load_audit_entries\" (\"audit_id\" TEXT USING COMPRESSION uncompressed, \"table_name\" TEXT USING COMPRESSION uncompressed, \"source_read_at\" TIMESTAMPTZ USING COMPRESSION uncompressed, entry TEXT USING COMPRESSION uncompressed)",
      "CREATE VIEW IF NOT EXISTS <<audit>>.\"load_audit\" AS SELECT \"audit_id\" AS \"audit_id\", \"table_name\" AS \"table_name\", (entry ->> 'partition_key') AS \"partition_key\", CAST((entry ->> 'window_start') AS TIMESTAMPTZ) AS \"window_start\", CAST((entry ->> 'window_end') AS TIMESTAMPTZ) AS \"window_end\", (entry ->> 'dimensions') AS \"dimensions\", (entry ->> 'outcome') AS \"outcome\", (entry ->> 'strategy') AS \"strategy\", (entry ->> 'lane') AS \"lane\", CAST((entry ->> 'rows_before') AS BIGINT) AS \"rows_before\", CAST((entry ->> 'rows_after') AS BIGINT) AS \"rows_after\", (entry ->> 'checksum') AS \"checksum\", (entry ->> 'reason') AS \"reason\", (entry ->> 'ticket') AS \"ticket\", (entry ->> 'launched_by') AS \"launched_by\", (entry ->> 'run_id') AS \"run_id\", (entry ->> 'backfill_id') AS \"backfill_id\", (entry ->> 'code_version') AS \"code_version\", \"source_read_at\" AS \"source_read_at\", CAST((entry ->> 'started_at') AS TIMESTAMPTZ) AS \"started_at\", CAST((entry ->> 'committed_at') AS TIMESTAMPTZ) AS \"committed_at\", CAST((entry ->> 'seconds') AS DOUBLE) AS \"seconds\", CAST((entry ->> 'cost') AS DOUBLE) AS \"cost\", (entry ->> 'detail') AS \"detail\" FROM <<audit>>.\"load_audit_entries\""
    ],
    "relation": "<<audit>>.\"load_audit\"",
    "stored": "<<audit>>.\"load_audit_entries\"",
    "columns": [
      "audit_id",
      "table_name",
      "source_read_at"
    ],
    "entry": true,
    "fields": {
      "audit_id": "str",
      "table_name": "str",
      "partition_key": "str",
      "window_start": "datetime",
      "window_end": "datetime",
      "dimensions": "str",
      "outcome": "str",
      "strategy": "str",
      "lane": "str",
      "rows_before": "int",
      "rows_after": "int",
      "checksum": "str",
      "reason": "str",
      "ticket": "str",
      "launched_by": "str",
      "run_id": "str",
      "backfill_id": "str",
      "code_version": "str",
      "source_read_at": "datetime",
      "started_at": "datetime",
      "committed_at": "datetime",
      "seconds": "float",
      "cost": "float",
      "detail": "str"
    },
    "newer_read": "SELECT (entry ->> 'run_id'), source_read_at, (entry ->> 'dimensions') FROM <<audit>>.\"load_audit_entries\" WHERE <<names>> AND (CAST((entry ->> 'window_start') AS TIMESTAMPTZ) IS NULL OR (CAST((entry ->> 'window_start') AS TIMESTAMPTZ) < <<end>> AND CAST((entry ->> 'window_end') AS TIMESTAMPTZ) > <<start>>)) AND (entry ->> 'outcome') = 'committed' AND source_read_at > <<read_at>>",
    "was_loaded": "SELECT DISTINCT (entry ->> 'dimensions') FROM <<audit>>.\"load_audit_entries\" WHERE <<names>> AND (CAST((entry ->> 'window_start') AS TIMESTAMPTZ) IS NULL OR (CAST((entry ->> 'window_start') AS TIMESTAMPTZ) < <<end>> AND CAST((entry ->> 'window_end') AS TIMESTAMPTZ) > <<start>>)) AND (entry ->> 'outcome') = 'committed'",
    "table_name": "lower(table_name)"
  },
  "settings": [
    "SET TimeZone = 'UTC'"
  ],
  "columns_of": "SELECT column_name, data_type FROM duckdb_columns() WHERE table_name = <<name>> AND <<where>> ORDER BY column_index",
  "there": "database_name = current_database() AND schema_name = <<schema>>",
  "staged": "database_name = 'temp'",
  "transaction": "CAST(txid_current() AS VARCHAR)",
  "begin_aside": "",
  "clock": "''",
  "rival": " (run_id, read_at, dimensions)"
}) %}{% endmacro %}

{% macro postgres__backfill_spelled() %}{% do return({
  "dialect": "postgres",
  "literals": {
    "date": "DATE '{}'",
    "timestamp": "TIMESTAMP '{}'",
    "timestamptz": "TIMESTAMPTZ '{}'",
    "int_yyyymmdd": "{}",
    "iso_text": "'{}'"
  },
  "text_type": "TEXT",
  "case_sensitive": true,
  "folds_upper": false,
  "escapes_backslashes": false,
  "default_schema": "public",
  "create_schema": "CREATE SCHEMA IF NOT EXISTS <<schema>>",
  "row_hash": "({columns})",
  "column_hash": {
    "smallint": "coalesce(hashint2extended({column}, {place}), {place})",
    "int2": "coalesce(hashint2extended({column}, {place}), {place})",
    "integer": "coalesce(hashint4extended({column}, {place}), {place})",
    "int": "coalesce(hashint4extended({column}, {place}), {place})",
    "int4": "coalesce(hashint4extended({column}, {place}), {place})",
    "bigint": "coalesce(hashint8extended({column}, {place}), {place})",
    "int8": "coalesce(hashint8extended({column}, {place}), {place})",
    "boolean": "coalesce(hashint4extended(CAST({column} AS integer), {place}), {place})",
    "bool": "coalesce(hashint4extended(CAST({column} AS integer), {place}), {place})",
    "numeric": "coalesce(hash_numeric_extended({column}, {place}), {place})",
    "decimal": "coalesce(hash_numeric_extended({column}, {place}), {place})",
    "real": "coalesce(hashfloat4extended({column}, {place}), {place})",
    "float4": "coalesce(hashfloat4extended({column}, {place}), {place})",
    "double precision": "coalesce(hashfloat8extended({column}, {place}), {place})",
    "float8": "coalesce(hashfloat8extended({column}, {place}), {place})",
    "text": "coalesce(hashtextextended({column}, {place}), {place})",
    "character varying": "coalesce(hashtextextended({column}, {place}), {place})",
    "varchar": "coalesce(hashtextextended({column}, {place}), {place})",
    "time without time zone": "coalesce(time_hash_extended({column}, {place}), {place})",
    "time": "coalesce(time_hash_extended({column}, {place}), {place})",
    "timestamp without time zone": "coalesce(timestamp_hash_extended({column}, {place}), {place})",
    "timestamp": "coalesce(timestamp_hash_extended({column}, {place}), {place})",
    "date": "coalesce(timestamp_hash_extended(CAST({column} AS timestamp), {place}), {place})",
    "timestamp with time zone": "coalesce(timestamp_hash_extended(CAST({column} AS timestamp), {place}), {place})",
    "timestamptz": "coalesce(timestamp_hash_extended(CAST({column} AS timestamp), {place}), {place})",
    "uuid": "coalesce(uuid_hash_extended({column}, {place}), {place})",
    "jsonb": "coalesce(jsonb_hash_extended({column}, {place}), {place})",
    "": "coalesce(hashtextextended(CAST({column} AS text), {place}), {place})"
  },
  "hash_joint": " # ",
  "hash_sum": "CAST(coalesce(sum({hash}), 0) AS TEXT)",
  "day_of_instant": "CAST({column} AT TIME ZONE {zone} AS DATE)",
  "audit": {
    "definition": [
      "CREATE SCHEMA IF NOT EXISTS <<audit>>",
      "CREATE TABLE IF NOT EXISTS <<audit>>.\"load_audit\" (\"audit_id\" TEXT, \"table_name\" TEXT, \"partition_key\" TEXT, \"window_start\" TIMESTAMPTZ, \"window_end\" TIMESTAMPTZ, \"dimensions\" TEXT, \"outcome\" TEXT, \"strategy\" TEXT, \"lane\" TEXT, \"rows_before\" BIGINT, \"rows_after\" BIGINT, \"checksum\" TEXT, \"reason\" TEXT, \"ticket\" TEXT, \"launched_by\" TEXT, \"run_id\" TEXT, \"backfill_id\" TEXT, \"code_version\" TEXT, \"source_read_at\" TIMESTAMPTZ, \"started_at\" TIMESTAMPTZ, \"committed_at\" TIMESTAMPTZ, \"seconds\" DOUBLE PRECISION, \"cost\" DOUBLE PRECISION, \"detail\" TEXT)",
      "CREATE INDEX IF NOT EXISTS \"load_audit_source_read_at\" ON <<audit>>.\"load_audit\" (\"table_name\", \"source_read_at\")",
      "CREATE INDEX IF NOT EXISTS \"load_audit_audit_id\" ON <<audit>>.\"load_audit\" (\"audit_id\")"
    ],
    "relation": "<<audit>>.\"load_audit\"",
    "stored": "<<audit>>.\"load_audit\"",
    "columns": [
      "audit_id",
      "table_name",
      "partition_key",
      "window_start",
      "window_end",
      "dimensions",
      "outcome",
      "strategy",
      "lane",
      "rows_before",
      "rows_after",
      "checksum",
      "reason",
      "ticket",
      "launched_by",
      "run_id",
      "backfill_id",
      "code_version",
      "source_read_at",
      "started_at",
      "committed_at",
      "seconds",
      "cost",
      "detail"
    ],
    "entry": false,
    "fields": {
      "audit_id": "str",
      "table_name": "str",
      "partition_key": "str",
      "window_start": "datetime",
      "window_end": "datetime",
      "dimensions": "str",
      "outcome": "str",
      "strategy": "str",
      "lane": "str",
      "rows_before": "int",
      "rows_after": "int",
      "checksum": "str",
      "reason": "str",
      "ticket": "str",
      "launched_by": "str",
      "run_id": "str",
      "backfill_id": "str",
      "code_version": "str",
      "source_read_at": "datetime",
      "started_at": "datetime",
      "committed_at": "datetime",
      "seconds": "float",
      "cost": "float",
      "detail": "str"
    },
    "newer_read": "SELECT \"run_id\", source_read_at, \"dimensions\" FROM <<audit>>.\"load_audit\" WHERE <<names>> AND (\"window_start\" IS NULL OR (\"window_start\" < <<end>> AND \"window_end\" > <<start>>)) AND \"outcome\" = 'committed' AND source_read_at > <<read_at>>",
    "was_loaded": "SELECT DISTINCT \"dimensions\" FROM <<audit>>.\"load_audit\" WHERE <<names>> AND (\"window_start\" IS NULL OR (\"window_start\" < <<end>> AND \"window_end\" > <<start>>)) AND \"outcome\" = 'committed'",
    "table_name": "table_name"
  },
  "settings": [
    "SET TimeZone = 'UTC'",
    "SET DateStyle = 'ISO, MDY'",
    "SET standard_conforming_strings = on",
    "SET extra_float_digits = 1",
    "SET bytea_output = 'hex'",
    "SET IntervalStyle = 'postgres'",
    "SET client_min_messages = warning"
  ],
  "columns_of": "SELECT attname, format_type(atttypid, atttypmod), typtype = 'd' FROM pg_catalog.pg_attribute JOIN pg_catalog.pg_type AS t ON t.oid = atttypid WHERE attrelid = to_regclass('<<relation>>') AND attnum > 0 AND NOT attisdropped ORDER BY attnum",
  "transaction": "CAST(now() AS TEXT)",
  "begin_aside": "BEGIN ISOLATION LEVEL READ COMMITTED;\n",
  "clock": "to_char(clock_timestamp() AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI:SS.US')",
  "rival": " (run_id, read_at, dimensions)",
  "ddl": {
    "lost_race": [
      "23505",
      "42P07",
      "42P06",
      "42701",
      "42710"
    ],
    "patience": 2.0,
    "pause": 0.5
  },
  "claim": {
    "who": "SET LOCAL application_name = 'backfill_assets run <<run>>'",
    "policies": "SET LOCAL row_security = off",
    "days": "kind, pg_advisory_xact_lock_shared(hashtextextended(t, 0)), <<days>> FROM (SELECT coalesce(n.nspname || '.' || r.relname, asked) AS t, CASE WHEN c.relkind = 'p' AND EXISTS (SELECT FROM pg_partition_tree(c.oid) AS part JOIN pg_catalog.pg_class AS p ON p.oid = part.relid WHERE p.relkind = 'f') THEN 'f' ELSE CAST(c.relkind AS text) END AS kind FROM (SELECT CAST('<<relation>>' AS text) AS asked) AS a LEFT JOIN pg_catalog.pg_class AS c ON c.oid = to_regclass(asked) LEFT JOIN pg_catalog.pg_class AS r ON r.oid = coalesce(pg_partition_root(c.oid), c.oid) LEFT JOIN pg_catalog.pg_namespace AS n ON n.oid = r.relnamespace OFFSET 0) AS claimed",
    "day": "pg_advisory_xact_lock(hashtextextended(t || '|<<day>>', 0))",
    "table": "kind, pg_advisory_xact_lock(hashtextextended(t, 0)) FROM (SELECT coalesce(n.nspname || '.' || r.relname, asked) AS t, CASE WHEN c.relkind = 'p' AND EXISTS (SELECT FROM pg_partition_tree(c.oid) AS part JOIN pg_catalog.pg_class AS p ON p.oid = part.relid WHERE p.relkind = 'f') THEN 'f' ELSE CAST(c.relkind AS text) END AS kind FROM (SELECT CAST('<<relation>>' AS text) AS asked) AS a LEFT JOIN pg_catalog.pg_class AS c ON c.oid = to_regclass(asked) LEFT JOIN pg_catalog.pg_class AS r ON r.oid = coalesce(pg_partition_root(c.oid), c.oid) LEFT JOIN pg_catalog.pg_namespace AS n ON n.oid = r.relnamespace OFFSET 0) AS claimed",
    "holding": "SELECT a.application_name, a.pid FROM (SELECT coalesce(n.nspname || '.' || r.relname, asked) AS t, CASE WHEN c.relkind = 'p' AND EXISTS (SELECT FROM pg_partition_tree(c.oid) AS part JOIN pg_catalog.pg_class AS p ON p.oid = part.relid WHERE p.relkind = 'f') THEN 'f' ELSE CAST(c.relkind AS text) END AS kind FROM (SELECT CAST('<<relation>>' AS text) AS asked) AS a LEFT JOIN pg_catalog.pg_class AS c ON c.oid = to_regclass(asked) LEFT JOIN pg_catalog.pg_class AS r ON r.oid = coalesce(pg_partition_root(c.oid), c.oid) LEFT JOIN pg_catalog.pg_namespace AS n ON n.oid = r.relnamespace OFFSET 0) AS claimed, LATERAL (VALUES (hashtextextended(t, 0)), <<keys>>) AS k (key) JOIN pg_locks AS l ON l.classid = CAST((k.key >> 32) & 4294967295 AS oid) AND l.objid = CAST(k.key & 4294967295 AS oid) AND l.objsubid = 1 JOIN pg_stat_activity AS a ON a.pid = l.pid WHERE l.locktype = 'advisory' AND l.granted AND l.mode = 'ExclusiveLock' AND l.pid <> pg_backend_pid() AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database()) LIMIT 1",
    "key": "(hashtextextended(t || '|<<day>>', 0))",
    "kind": "SELECT kind FROM (SELECT coalesce(n.nspname || '.' || r.relname, asked) AS t, CASE WHEN c.relkind = 'p' AND EXISTS (SELECT FROM pg_partition_tree(c.oid) AS part JOIN pg_catalog.pg_class AS p ON p.oid = part.relid WHERE p.relkind = 'f') THEN 'f' ELSE CAST(c.relkind AS text) END AS kind FROM (SELECT CAST('<<relation>>' AS text) AS asked) AS a LEFT JOIN pg_catalog.pg_class AS c ON c.oid = to_regclass(asked) LEFT JOIN pg_catalog.pg_class AS r ON r.oid = coalesce(pg_partition_root(c.oid), c.oid) LEFT JOIN pg_catalog.pg_namespace AS n ON n.oid = r.relnamespace OFFSET 0) AS claimed",
    "beyond": {
      "v": [
        "it is a view, and writers of the table beneath it would not know of this one",
        "Name the table beneath it"
      ],
      "m": [
        "it is a materialized view, which only REFRESH writes",
        "Name the table beneath it"
      ],
      "f": [
        "it is a foreign table or has a foreign partition, and another server commits apart from this one",
        "Load the table through the other server's own URL"
      ]
    }
  }
}) %}{% endmacro %}

{% macro snowflake__backfill_spelled() %}{% do return({
  "dialect": "snowflake",
  "literals": {
    "date": "DATE '{}'",
    "timestamp": "'{}'::TIMESTAMP_NTZ",
    "timestamptz": "'{}'::TIMESTAMP_TZ",
    "int_yyyymmdd": "{}",
    "iso_text": "'{}'"
  },
  "text_type": "TEXT",
  "case_sensitive": false,
  "folds_upper": true,
  "escapes_backslashes": true,
  "default_schema": "public",
  "create_schema": "CREATE SCHEMA IF NOT EXISTS <<schema>>",
  "row_hash": "CAST(HASH({columns}) AS NUMBER(20, 0))",
  "column_hash": {
    "": "{column}"
  },
  "hash_joint": ", ",
  "hash_sum": "CAST(coalesce(sum({hash}), 0) AS VARCHAR)",
  "day_of_instant": "CAST(CONVERT_TIMEZONE({zone}, {column}) AS DATE)",
  "audit": {
    "definition": [
      "CREATE SCHEMA IF NOT EXISTS <<audit>>",
      "CREATE TABLE IF NOT EXISTS <<audit>>.\"LOAD_AUDIT\" (\"AUDIT_ID\" TEXT, \"TABLE_NAME\" TEXT, \"PARTITION_KEY\" TEXT, \"WINDOW_START\" TIMESTAMPTZ, \"WINDOW_END\" TIMESTAMPTZ, \"DIMENSIONS\" TEXT, \"OUTCOME\" TEXT, \"STRATEGY\" TEXT, \"LANE\" TEXT, \"ROWS_BEFORE\" BIGINT, \"ROWS_AFTER\" BIGINT, \"CHECKSUM\" TEXT, \"REASON\" TEXT, \"TICKET\" TEXT, \"LAUNCHED_BY\" TEXT, \"RUN_ID\" TEXT, \"BACKFILL_ID\" TEXT, \"CODE_VERSION\" TEXT, \"SOURCE_READ_AT\" TIMESTAMPTZ, \"STARTED_AT\" TIMESTAMPTZ, \"COMMITTED_AT\" TIMESTAMPTZ, \"SECONDS\" DOUBLE, \"COST\" DOUBLE, \"DETAIL\" TEXT)"
    ],
    "relation": "<<audit>>.\"LOAD_AUDIT\"",
    "stored": "<<audit>>.\"LOAD_AUDIT\"",
    "columns": [
      "audit_id",
      "table_name",
      "partition_key",
      "window_start",
      "window_end",
      "dimensions",
      "outcome",
      "strategy",
      "lane",
      "rows_before",
      "rows_after",
      "checksum",
      "reason",
      "ticket",
      "launched_by",
      "run_id",
      "backfill_id",
      "code_version",
      "source_read_at",
      "started_at",
      "committed_at",
      "seconds",
      "cost",
      "detail"
    ],
    "entry": false,
    "fields": {
      "audit_id": "str",
      "table_name": "str",
      "partition_key": "str",
      "window_start": "datetime",
      "window_end": "datetime",
      "dimensions": "str",
      "outcome": "str",
      "strategy": "str",
      "lane": "str",
      "rows_before": "int",
      "rows_after": "int",
      "checksum": "str",
      "reason": "str",
      "ticket": "str",
      "launched_by": "str",
      "run_id": "str",
      "backfill_id": "str",
      "code_version": "str",
      "source_read_at": "datetime",
      "started_at": "datetime",
      "committed_at": "datetime",
      "seconds": "float",
      "cost": "float",
      "detail": "str"
    },
    "newer_read": "SELECT \"RUN_ID\", source_read_at, \"DIMENSIONS\" FROM <<audit>>.\"LOAD_AUDIT\" WHERE <<names>> AND (\"WINDOW_START\" IS NULL OR (\"WINDOW_START\" < <<end>> AND \"WINDOW_END\" > <<start>>)) AND \"OUTCOME\" = 'committed' AND source_read_at > <<read_at>>",
    "was_loaded": "SELECT DISTINCT \"DIMENSIONS\" FROM <<audit>>.\"LOAD_AUDIT\" WHERE <<names>> AND (\"WINDOW_START\" IS NULL OR (\"WINDOW_START\" < <<end>> AND \"WINDOW_END\" > <<start>>)) AND \"OUTCOME\" = 'committed'",
    "table_name": "lower(table_name)"
  },
  "settings": [
    "ALTER SESSION SET TIMEZONE = 'UTC' TIMESTAMP_TYPE_MAPPING = 'TIMESTAMP_NTZ' QUOTED_IDENTIFIERS_IGNORE_CASE = FALSE TRANSACTION_ABORT_ON_ERROR = TRUE ABORT_DETACHED_QUERY = TRUE CLIENT_STAGE_ARRAY_BINDING_THRESHOLD = 0 BINARY_INPUT_FORMAT = 'HEX' DATE_INPUT_FORMAT = 'AUTO' TIMESTAMP_INPUT_FORMAT = 'AUTO'"
  ],
  "transaction": "CURRENT_TRANSACTION()",
  "begin_aside": "",
  "clock": "to_char(SYSDATE(), 'YYYY-MM-DD HH24:MI:SS.FF6')",
  "rival": "",
  "unset": [
    "TIMEZONE",
    "TIMESTAMP_TYPE_MAPPING",
    "QUOTED_IDENTIFIERS_IGNORE_CASE",
    "TRANSACTION_ABORT_ON_ERROR",
    "ABORT_DETACHED_QUERY",
    "CLIENT_STAGE_ARRAY_BINDING_THRESHOLD",
    "BINARY_INPUT_FORMAT",
    "DATE_INPUT_FORMAT",
    "TIMESTAMP_INPUT_FORMAT"
  ],
  "claim": {
    "making": "CREATE TABLE IF NOT EXISTS <<claims>> COMMENT = <<comment>> AS SELECT column1 AS bucket, CAST(NULL AS VARCHAR) AS holder, CAST(NULL AS TIMESTAMP_NTZ) AS claimed_at FROM (VALUES (0), (1), (2), (3), (4), (5), (6), (7), (8), (9), (10), (11), (12), (13), (14), (15), (16), (17), (18), (19), (20), (21), (22), (23), (24), (25), (26), (27), (28), (29), (30), (31)) AS buckets (column1)",
    "update": "UPDATE <<claims>> SET holder = '<<run>>', claimed_at = SYSDATE() WHERE bucket IN (<<buckets>>)",
    "buckets": 32,
    "prefix": "SLICE_CLAIMS_"
  }
}) %}{% endmacro %}
