-- the first slice: the table is made

SET XACT_ABORT ON;
    SET DATEFORMAT ymd

SELECT CASE WHEN is_read_committed_snapshot_on = 1 THEN 0 ELSE 1 END
    FROM sys.databases
    WHERE name = DB_NAME()

SELECT c.name, t.name, c.max_length, c.precision, c.scale
    FROM sys.columns AS c
    JOIN sys.types AS t ON t.user_type_id = c.user_type_id
    WHERE c.object_id = OBJECT_ID(N'[backfill].[load_audit]')
    ORDER BY c.column_id

DECLARE @make nvarchar(4000) = N'CREATE SCHEMA ' + QUOTENAME(N'backfill');
    IF SCHEMA_ID(N'backfill') IS NULL
    EXEC(@make)

IF OBJECT_ID(N'[backfill].[load_audit]') IS NULL
    CREATE TABLE [backfill].[load_audit] ([audit_id] nvarchar(64) COLLATE Latin1_General_100_BIN2, [table_name] nvarchar(800) COLLATE Latin1_General_100_BIN2, [partition_key] nvarchar(4000) COLLATE Latin1_General_100_BIN2, [window_start] datetimeoffset(6), [window_end] datetimeoffset(6), [dimensions] nvarchar(4000) COLLATE Latin1_General_100_BIN2, [outcome] nvarchar(4000) COLLATE Latin1_General_100_BIN2, [strategy] nvarchar(4000) COLLATE Latin1_General_100_BIN2, [lane] nvarchar(4000) COLLATE Latin1_General_100_BIN2, [rows_before] BIGINT, [rows_after] BIGINT, [checksum] nvarchar(4000) COLLATE Latin1_General_100_BIN2, [reason] nvarchar(4000) COLLATE Latin1_General_100_BIN2, [ticket] nvarchar(4000) COLLATE Latin1_General_100_BIN2, [launched_by] nvarchar(4000) COLLATE Latin1_General_100_BIN2, [run_id] nvarchar(4000) COLLATE Latin1_General_100_BIN2, [backfill_id] nvarchar(4000) COLLATE Latin1_General_100_BIN2, [code_version] nvarchar(4000) COLLATE Latin1_General_100_BIN2, [source_read_at] datetimeoffset(6), [started_at] datetimeoffset(6), [committed_at] datetimeoffset(6), [seconds] float, [cost] float, [detail] nvarchar(max) COLLATE Latin1_General_100_BIN2) WITH (HEAP, DISTRIBUTION = ROUND_ROBIN)

SELECT SYSUTCDATETIME()

SELECT o.type, p.name
    FROM sys.objects AS o LEFT
    JOIN sys.security_predicates AS f ON f.target_object_id = o.object_id
    AND f.predicate_type = 0 LEFT
    JOIN sys.security_policies AS p ON p.object_id = f.object_id
    AND p.is_enabled = 1
    WHERE o.object_id = OBJECT_ID(N'[mart].[fct_sales]')

SELECT c.name, t.name, c.max_length, c.precision, c.scale
    FROM sys.columns AS c
    JOIN sys.types AS t ON t.user_type_id = c.user_type_id
    WHERE c.object_id = OBJECT_ID(N'[backfill].[claim_f1024bc2acaa5ed5aa7420151b69c1c9]')
    ORDER BY c.column_id

DECLARE @make nvarchar(4000) = N'CREATE SCHEMA ' + QUOTENAME(N'backfill');
    IF SCHEMA_ID(N'backfill') IS NULL
    EXEC(@make)

IF OBJECT_ID(N'[backfill].[claim_f1024bc2acaa5ed5aa7420151b69c1c9]') IS NULL
    CREATE TABLE [backfill].[claim_f1024bc2acaa5ed5aa7420151b69c1c9] (table_name nvarchar(4000), holder nvarchar(4000) NULL) WITH (HEAP, DISTRIBUTION = ROUND_ROBIN)

IF NOT EXISTS (SELECT 1
    FROM [backfill].[claim_f1024bc2acaa5ed5aa7420151b69c1c9]) INSERT INTO [backfill].[claim_f1024bc2acaa5ed5aa7420151b69c1c9] (table_name)
    VALUES (N'[mart].[fct_sales]')

DECLARE @make nvarchar(4000) = N'CREATE SCHEMA ' + QUOTENAME(N'backfill');
    IF SCHEMA_ID(N'backfill') IS NULL
    EXEC(@make)

SELECT name
    FROM sys.tables
    WHERE schema_id = SCHEMA_ID('backfill')
    AND name LIKE 'backfill[_]stage[_]%'
    AND create_date < DATEADD(hour, -48, GETDATE())

CREATE TABLE [backfill].[backfill_stage_1] ([sold_at] datetimeoffset(6) NULL, [id] bigint NULL, [price] float NULL, [note] nvarchar(4000) NULL) WITH (HEAP, DISTRIBUTION = ROUND_ROBIN)

BULK [backfill].[backfill_stage_1]

SELECT c.name, t.name, c.max_length, c.precision, c.scale
    FROM sys.columns AS c
    JOIN sys.types AS t ON t.user_type_id = c.user_type_id
    WHERE c.object_id = OBJECT_ID(N'[backfill].[backfill_stage_1]')
    ORDER BY c.column_id

SELECT c.name, t.name, c.max_length, c.precision, c.scale
    FROM sys.columns AS c
    JOIN sys.types AS t ON t.user_type_id = c.user_type_id
    WHERE c.object_id = OBJECT_ID(N'[mart].[fct_sales]')
    ORDER BY c.column_id

SELECT count(*),
    count(CASE WHEN [sold_at] >= CAST('2026-05-12 00:00:00+00:00' AS datetimeoffset(6))
    AND [sold_at] < CAST('2026-05-13 00:00:00+00:00' AS datetimeoffset(6)) THEN 1 END), count(coalesce(CASE WHEN [id] IS NOT NULL THEN 1 END, NULL)), CAST(coalesce(sum(CAST(CAST(SUBSTRING(HASHBYTES('SHA2_256',
    coalesce(CAST(DATALENGTH(CONVERT(nvarchar(max), CAST(SWITCHOFFSET([sold_at], '+00:00') AS datetime2), 126)) AS nvarchar(max)) + N':' + CONVERT(nvarchar(max), CAST(SWITCHOFFSET([sold_at], '+00:00') AS datetime2), 126), N'~') COLLATE Latin1_General_100_BIN2 +
    coalesce(CAST(DATALENGTH(CAST([id] AS nvarchar(max))) AS nvarchar(max)) + N':' + CAST([id] AS nvarchar(max)), N'~') COLLATE Latin1_General_100_BIN2 +
    coalesce(CAST(DATALENGTH(CONVERT(nvarchar(max), [price], 3)) AS nvarchar(max)) + N':' + CONVERT(nvarchar(max), [price], 3), N'~') COLLATE Latin1_General_100_BIN2 +
    coalesce(CAST(DATALENGTH(CAST([note] AS nvarchar(max))) AS nvarchar(max)) + N':' + CAST([note] AS nvarchar(max)), N'~') COLLATE Latin1_General_100_BIN2), 1, 8) AS bigint) AS decimal(38, 0))), 0) AS varchar(40))
    FROM (SELECT [sold_at] AS [sold_at], [id] AS [id], [price] AS [price], [note] AS [note]
    FROM [backfill].[backfill_stage_1]) AS staged

SELECT count(*)
    FROM (SELECT [id], count(*) AS copies
    FROM (SELECT [sold_at] AS [sold_at], [id] AS [id], [price] AS [price], [note] AS [note]
    FROM [backfill].[backfill_stage_1]) AS staged
    GROUP BY [id]
    HAVING count(*) > 1) AS twice

DECLARE @make nvarchar(4000) = N'CREATE SCHEMA ' + QUOTENAME(N'mart');
    IF SCHEMA_ID(N'mart') IS NULL
    EXEC(@make)

IF OBJECT_ID(N'[mart].[fct_sales]') IS NULL
    CREATE TABLE [mart].[fct_sales] ([sold_at] datetimeoffset(6), [id] bigint, [price] float, [note] nvarchar(4000)) WITH (HEAP, DISTRIBUTION = ROUND_ROBIN)

SELECT c.name, t.name, c.max_length, c.precision, c.scale
    FROM sys.columns AS c
    JOIN sys.types AS t ON t.user_type_id = c.user_type_id
    WHERE c.object_id = OBJECT_ID(N'[backfill].[backfill_stage_1]')
    ORDER BY c.column_id

SELECT c.name, t.name, c.max_length, c.precision, c.scale
    FROM sys.columns AS c
    JOIN sys.types AS t ON t.user_type_id = c.user_type_id
    WHERE c.object_id = OBJECT_ID(N'[mart].[fct_sales]')
    ORDER BY c.column_id

SELECT count(*),
    count(CASE WHEN [sold_at] >= CAST('2026-05-12 00:00:00+00:00' AS datetimeoffset(6))
    AND [sold_at] < CAST('2026-05-13 00:00:00+00:00' AS datetimeoffset(6)) THEN 1 END), count(coalesce(CASE WHEN [id] IS NOT NULL THEN 1 END, NULL)), CAST(coalesce(sum(CAST(CAST(SUBSTRING(HASHBYTES('SHA2_256',
    coalesce(CAST(DATALENGTH(CONVERT(nvarchar(max), CAST(SWITCHOFFSET([sold_at], '+00:00') AS datetime2), 126)) AS nvarchar(max)) + N':' + CONVERT(nvarchar(max), CAST(SWITCHOFFSET([sold_at], '+00:00') AS datetime2), 126), N'~') COLLATE Latin1_General_100_BIN2 +
    coalesce(CAST(DATALENGTH(CAST([id] AS nvarchar(max))) AS nvarchar(max)) + N':' + CAST([id] AS nvarchar(max)), N'~') COLLATE Latin1_General_100_BIN2 +
    coalesce(CAST(DATALENGTH(CONVERT(nvarchar(max), [price], 3)) AS nvarchar(max)) + N':' + CONVERT(nvarchar(max), [price], 3), N'~') COLLATE Latin1_General_100_BIN2 +
    coalesce(CAST(DATALENGTH(CAST([note] AS nvarchar(max))) AS nvarchar(max)) + N':' + CAST([note] AS nvarchar(max)), N'~') COLLATE Latin1_General_100_BIN2), 1, 8) AS bigint) AS decimal(38, 0))), 0) AS varchar(40))
    FROM (SELECT [sold_at] AS [sold_at], [id] AS [id], [price] AS [price], [note] AS [note]
    FROM [backfill].[backfill_stage_1]) AS staged

SELECT count(*)
    FROM (SELECT [id], count(*) AS copies
    FROM (SELECT [sold_at] AS [sold_at], [id] AS [id], [price] AS [price], [note] AS [note]
    FROM [backfill].[backfill_stage_1]) AS staged
    GROUP BY [id]
    HAVING count(*) > 1) AS twice

BEGIN TRANSACTION

UPDATE [backfill].[claim_f1024bc2acaa5ed5aa7420151b69c1c9]
    SET holder = N'a-run'

SELECT [run_id], source_read_at, [dimensions]
    FROM [backfill].[load_audit]
    WHERE lower(table_name) IN (N'mart.fct_sales', N'warehouse.mart.fct_sales')
    AND ([window_start] IS NULL OR ([window_start] < CAST('2026-05-13 00:00:00+00:00' AS datetimeoffset(6))
    AND [window_end] > CAST('2026-05-12 00:00:00+00:00' AS datetimeoffset(6))))
    AND [outcome] = 'committed'
    AND source_read_at > CAST('2026-06-01 12:00:00+00:00' AS datetimeoffset(6))

DELETE
    FROM [mart].[fct_sales]
    WHERE [sold_at] >= CAST('2026-05-12 00:00:00+00:00' AS datetimeoffset(6))
    AND [sold_at] < CAST('2026-05-13 00:00:00+00:00' AS datetimeoffset(6))

INSERT INTO [mart].[fct_sales] ([sold_at], [id], [price], [note])
    SELECT [sold_at] AS [sold_at], [id] AS [id], [price] AS [price], [note] AS [note]
    FROM [backfill].[backfill_stage_1]

SELECT count(*), CAST(coalesce(sum(CAST(CAST(SUBSTRING(HASHBYTES('SHA2_256',
    coalesce(CAST(DATALENGTH(CONVERT(nvarchar(max), CAST(SWITCHOFFSET([sold_at], '+00:00') AS datetime2), 126)) AS nvarchar(max)) + N':' + CONVERT(nvarchar(max), CAST(SWITCHOFFSET([sold_at], '+00:00') AS datetime2), 126), N'~') COLLATE Latin1_General_100_BIN2 +
    coalesce(CAST(DATALENGTH(CAST([id] AS nvarchar(max))) AS nvarchar(max)) + N':' + CAST([id] AS nvarchar(max)), N'~') COLLATE Latin1_General_100_BIN2 +
    coalesce(CAST(DATALENGTH(CONVERT(nvarchar(max), [price], 3)) AS nvarchar(max)) + N':' + CONVERT(nvarchar(max), [price], 3), N'~') COLLATE Latin1_General_100_BIN2 +
    coalesce(CAST(DATALENGTH(CAST([note] AS nvarchar(max))) AS nvarchar(max)) + N':' + CAST([note] AS nvarchar(max)), N'~') COLLATE Latin1_General_100_BIN2), 1, 8) AS bigint) AS decimal(38, 0))), 0) AS varchar(40))
    FROM [mart].[fct_sales]
    WHERE [sold_at] >= CAST('2026-05-12 00:00:00+00:00' AS datetimeoffset(6))
    AND [sold_at] < CAST('2026-05-13 00:00:00+00:00' AS datetimeoffset(6))

SELECT SYSUTCDATETIME()

INSERT INTO [backfill].[load_audit] ([audit_id], [table_name], [partition_key], [window_start], [window_end], [dimensions], [outcome], [strategy], [lane], [rows_before], [rows_after], [checksum], [reason], [ticket], [launched_by], [run_id], [backfill_id], [code_version], [source_read_at], [started_at], [committed_at], [seconds], [cost], [detail])
    SELECT N'audit-id', N'mart.fct_sales', N'2026-05-12', CAST('2026-05-12 00:00:00+00:00' AS datetimeoffset(6)), CAST('2026-05-13 00:00:00+00:00' AS datetimeoffset(6)), N'{}', N'committed', N'recompute', N'live', 0, 2, N'392288196327931801', NULL, NULL, NULL, N'a-run', NULL, NULL, CAST('2026-06-01 12:00:00+00:00' AS datetimeoffset(6)), CAST('2026-06-01 12:00:00+00:00' AS datetimeoffset(6)), CAST('2026-06-01 12:00:00+00:00' AS datetimeoffset(6)), 0.1, NULL, NULL

COMMIT TRANSACTION

IF OBJECT_ID(N'[backfill].[backfill_stage_1]') IS NOT NULL
    DROP TABLE [backfill].[backfill_stage_1]

SELECT count(*)
    FROM [backfill].[load_audit]
    WHERE audit_id = N'audit-id'


-- a slice of a table that is there, in a session that has begun

SELECT SYSUTCDATETIME()

SELECT o.type, p.name
    FROM sys.objects AS o LEFT
    JOIN sys.security_predicates AS f ON f.target_object_id = o.object_id
    AND f.predicate_type = 0 LEFT
    JOIN sys.security_policies AS p ON p.object_id = f.object_id
    AND p.is_enabled = 1
    WHERE o.object_id = OBJECT_ID(N'[mart].[fct_sales]')

CREATE TABLE [backfill].[backfill_stage_1] ([sold_at] datetimeoffset(6) NULL, [id] bigint NULL, [price] float NULL, [note] nvarchar(4000) NULL) WITH (HEAP, DISTRIBUTION = ROUND_ROBIN)

BULK [backfill].[backfill_stage_1]

SELECT c.name, t.name, c.max_length, c.precision, c.scale
    FROM sys.columns AS c
    JOIN sys.types AS t ON t.user_type_id = c.user_type_id
    WHERE c.object_id = OBJECT_ID(N'[backfill].[backfill_stage_1]')
    ORDER BY c.column_id

SELECT c.name, t.name, c.max_length, c.precision, c.scale
    FROM sys.columns AS c
    JOIN sys.types AS t ON t.user_type_id = c.user_type_id
    WHERE c.object_id = OBJECT_ID(N'[mart].[fct_sales]')
    ORDER BY c.column_id

SELECT count(*),
    count(CASE WHEN [sold_at] >= CAST('2026-05-12 00:00:00+00:00' AS datetimeoffset(6))
    AND [sold_at] < CAST('2026-05-13 00:00:00+00:00' AS datetimeoffset(6)) THEN 1 END), count(coalesce(CASE WHEN [id] IS NOT NULL THEN 1 END, NULL)), CAST(coalesce(sum(CAST(CAST(SUBSTRING(HASHBYTES('SHA2_256',
    coalesce(CAST(DATALENGTH(CONVERT(nvarchar(max), CAST(SWITCHOFFSET([sold_at], '+00:00') AS datetime2), 126)) AS nvarchar(max)) + N':' + CONVERT(nvarchar(max), CAST(SWITCHOFFSET([sold_at], '+00:00') AS datetime2), 126), N'~') COLLATE Latin1_General_100_BIN2 +
    coalesce(CAST(DATALENGTH(CAST([id] AS nvarchar(max))) AS nvarchar(max)) + N':' + CAST([id] AS nvarchar(max)), N'~') COLLATE Latin1_General_100_BIN2 +
    coalesce(CAST(DATALENGTH(CONVERT(nvarchar(max), [price], 3)) AS nvarchar(max)) + N':' + CONVERT(nvarchar(max), [price], 3), N'~') COLLATE Latin1_General_100_BIN2 +
    coalesce(CAST(DATALENGTH(CAST([note] AS nvarchar(max))) AS nvarchar(max)) + N':' + CAST([note] AS nvarchar(max)), N'~') COLLATE Latin1_General_100_BIN2), 1, 8) AS bigint) AS decimal(38, 0))), 0) AS varchar(40))
    FROM (SELECT [sold_at] AS [sold_at], [id] AS [id], [price] AS [price], [note] AS [note]
    FROM [backfill].[backfill_stage_1]) AS staged

SELECT count(*)
    FROM (SELECT [id], count(*) AS copies
    FROM (SELECT [sold_at] AS [sold_at], [id] AS [id], [price] AS [price], [note] AS [note]
    FROM [backfill].[backfill_stage_1]) AS staged
    GROUP BY [id]
    HAVING count(*) > 1) AS twice

BEGIN TRANSACTION

UPDATE [backfill].[claim_f1024bc2acaa5ed5aa7420151b69c1c9]
    SET holder = N'a-run'

SELECT [run_id], source_read_at, [dimensions]
    FROM [backfill].[load_audit]
    WHERE lower(table_name) IN (N'mart.fct_sales', N'warehouse.mart.fct_sales')
    AND ([window_start] IS NULL OR ([window_start] < CAST('2026-05-13 00:00:00+00:00' AS datetimeoffset(6))
    AND [window_end] > CAST('2026-05-12 00:00:00+00:00' AS datetimeoffset(6))))
    AND [outcome] = 'committed'
    AND source_read_at > CAST('2026-06-01 12:00:00+00:00' AS datetimeoffset(6))

DELETE
    FROM [mart].[fct_sales]
    WHERE [sold_at] >= CAST('2026-05-12 00:00:00+00:00' AS datetimeoffset(6))
    AND [sold_at] < CAST('2026-05-13 00:00:00+00:00' AS datetimeoffset(6))

INSERT INTO [mart].[fct_sales] ([sold_at], [id], [price], [note])
    SELECT [sold_at] AS [sold_at], [id] AS [id], [price] AS [price], [note] AS [note]
    FROM [backfill].[backfill_stage_1]

SELECT count(*), CAST(coalesce(sum(CAST(CAST(SUBSTRING(HASHBYTES('SHA2_256',
    coalesce(CAST(DATALENGTH(CONVERT(nvarchar(max), CAST(SWITCHOFFSET([sold_at], '+00:00') AS datetime2), 126)) AS nvarchar(max)) + N':' + CONVERT(nvarchar(max), CAST(SWITCHOFFSET([sold_at], '+00:00') AS datetime2), 126), N'~') COLLATE Latin1_General_100_BIN2 +
    coalesce(CAST(DATALENGTH(CAST([id] AS nvarchar(max))) AS nvarchar(max)) + N':' + CAST([id] AS nvarchar(max)), N'~') COLLATE Latin1_General_100_BIN2 +
    coalesce(CAST(DATALENGTH(CONVERT(nvarchar(max), [price], 3)) AS nvarchar(max)) + N':' + CONVERT(nvarchar(max), [price], 3), N'~') COLLATE Latin1_General_100_BIN2 +
    coalesce(CAST(DATALENGTH(CAST([note] AS nvarchar(max))) AS nvarchar(max)) + N':' + CAST([note] AS nvarchar(max)), N'~') COLLATE Latin1_General_100_BIN2), 1, 8) AS bigint) AS decimal(38, 0))), 0) AS varchar(40))
    FROM [mart].[fct_sales]
    WHERE [sold_at] >= CAST('2026-05-12 00:00:00+00:00' AS datetimeoffset(6))
    AND [sold_at] < CAST('2026-05-13 00:00:00+00:00' AS datetimeoffset(6))

SELECT SYSUTCDATETIME()

INSERT INTO [backfill].[load_audit] ([audit_id], [table_name], [partition_key], [window_start], [window_end], [dimensions], [outcome], [strategy], [lane], [rows_before], [rows_after], [checksum], [reason], [ticket], [launched_by], [run_id], [backfill_id], [code_version], [source_read_at], [started_at], [committed_at], [seconds], [cost], [detail])
    SELECT N'audit-id', N'mart.fct_sales', N'2026-05-12', CAST('2026-05-12 00:00:00+00:00' AS datetimeoffset(6)), CAST('2026-05-13 00:00:00+00:00' AS datetimeoffset(6)), N'{}', N'committed', N'recompute', N'live', 2, 2, N'392288196327931801', NULL, NULL, NULL, N'a-run', NULL, NULL, CAST('2026-06-01 12:00:00+00:00' AS datetimeoffset(6)), CAST('2026-06-01 12:00:00+00:00' AS datetimeoffset(6)), CAST('2026-06-01 12:00:00+00:00' AS datetimeoffset(6)), 0.1, NULL, NULL

COMMIT TRANSACTION

IF OBJECT_ID(N'[backfill].[backfill_stage_1]') IS NOT NULL
    DROP TABLE [backfill].[backfill_stage_1]

SELECT count(*)
    FROM [backfill].[load_audit]
    WHERE audit_id = N'audit-id'


-- the same from a query

SELECT SYSUTCDATETIME()

SELECT o.type, p.name
    FROM sys.objects AS o LEFT
    JOIN sys.security_predicates AS f ON f.target_object_id = o.object_id
    AND f.predicate_type = 0 LEFT
    JOIN sys.security_policies AS p ON p.object_id = f.object_id
    AND p.is_enabled = 1
    WHERE o.object_id = OBJECT_ID(N'[mart].[fct_sales]')

WITH s AS (SELECT *
    FROM mart.src)
    SELECT TOP 0 *
    FROM (SELECT [sold_at] AS [sold_at]
    FROM s
    WHERE [sold_at] IS NULL) AS source_column

CREATE TABLE [backfill].[backfill_stage_1] WITH (HEAP, DISTRIBUTION = ROUND_ROBIN) AS WITH s AS (SELECT *
    FROM mart.src)
    SELECT *
    FROM s
    WHERE [sold_at] >= CAST('2026-05-12 00:00:00+00:00' AS DATETIMEOFFSET(6))
    AND [sold_at] < CAST('2026-05-13 00:00:00+00:00' AS DATETIMEOFFSET(6))

SELECT c.name, t.name, c.max_length, c.precision, c.scale
    FROM sys.columns AS c
    JOIN sys.types AS t ON t.user_type_id = c.user_type_id
    WHERE c.object_id = OBJECT_ID(N'[backfill].[backfill_stage_1]')
    ORDER BY c.column_id

SELECT c.name, t.name, c.max_length, c.precision, c.scale
    FROM sys.columns AS c
    JOIN sys.types AS t ON t.user_type_id = c.user_type_id
    WHERE c.object_id = OBJECT_ID(N'[mart].[fct_sales]')
    ORDER BY c.column_id

SELECT count(*),
    count(CASE WHEN [sold_at] >= CAST('2026-05-12 00:00:00+00:00' AS datetimeoffset(6))
    AND [sold_at] < CAST('2026-05-13 00:00:00+00:00' AS datetimeoffset(6)) THEN 1 END), count(coalesce(CASE WHEN [id] IS NOT NULL THEN 1 END, NULL)), CAST(coalesce(sum(CAST(CAST(SUBSTRING(HASHBYTES('SHA2_256',
    coalesce(CAST(DATALENGTH(CONVERT(nvarchar(max), CAST(SWITCHOFFSET([sold_at], '+00:00') AS datetime2), 126)) AS nvarchar(max)) + N':' + CONVERT(nvarchar(max), CAST(SWITCHOFFSET([sold_at], '+00:00') AS datetime2), 126), N'~') COLLATE Latin1_General_100_BIN2 +
    coalesce(CAST(DATALENGTH(CAST([id] AS nvarchar(max))) AS nvarchar(max)) + N':' + CAST([id] AS nvarchar(max)), N'~') COLLATE Latin1_General_100_BIN2 +
    coalesce(CAST(DATALENGTH(CONVERT(nvarchar(max), [price], 3)) AS nvarchar(max)) + N':' + CONVERT(nvarchar(max), [price], 3), N'~') COLLATE Latin1_General_100_BIN2 +
    coalesce(CAST(DATALENGTH(CAST([note] AS nvarchar(max))) AS nvarchar(max)) + N':' + CAST([note] AS nvarchar(max)), N'~') COLLATE Latin1_General_100_BIN2), 1, 8) AS bigint) AS decimal(38, 0))), 0) AS varchar(40))
    FROM (SELECT [sold_at] AS [sold_at], [id] AS [id], [price] AS [price], [note] AS [note]
    FROM [backfill].[backfill_stage_1]) AS staged

SELECT count(*)
    FROM (SELECT [id], count(*) AS copies
    FROM (SELECT [sold_at] AS [sold_at], [id] AS [id], [price] AS [price], [note] AS [note]
    FROM [backfill].[backfill_stage_1]) AS staged
    GROUP BY [id]
    HAVING count(*) > 1) AS twice

BEGIN TRANSACTION

UPDATE [backfill].[claim_f1024bc2acaa5ed5aa7420151b69c1c9]
    SET holder = N'a-run'

SELECT [run_id], source_read_at, [dimensions]
    FROM [backfill].[load_audit]
    WHERE lower(table_name) IN (N'mart.fct_sales', N'warehouse.mart.fct_sales')
    AND ([window_start] IS NULL OR ([window_start] < CAST('2026-05-13 00:00:00+00:00' AS datetimeoffset(6))
    AND [window_end] > CAST('2026-05-12 00:00:00+00:00' AS datetimeoffset(6))))
    AND [outcome] = 'committed'
    AND source_read_at > CAST('2026-06-01 12:00:00+00:00' AS datetimeoffset(6))

DELETE
    FROM [mart].[fct_sales]
    WHERE [sold_at] >= CAST('2026-05-12 00:00:00+00:00' AS datetimeoffset(6))
    AND [sold_at] < CAST('2026-05-13 00:00:00+00:00' AS datetimeoffset(6))

INSERT INTO [mart].[fct_sales] ([sold_at], [id], [price], [note])
    SELECT [sold_at] AS [sold_at], [id] AS [id], [price] AS [price], [note] AS [note]
    FROM [backfill].[backfill_stage_1]

SELECT count(*), CAST(coalesce(sum(CAST(CAST(SUBSTRING(HASHBYTES('SHA2_256',
    coalesce(CAST(DATALENGTH(CONVERT(nvarchar(max), CAST(SWITCHOFFSET([sold_at], '+00:00') AS datetime2), 126)) AS nvarchar(max)) + N':' + CONVERT(nvarchar(max), CAST(SWITCHOFFSET([sold_at], '+00:00') AS datetime2), 126), N'~') COLLATE Latin1_General_100_BIN2 +
    coalesce(CAST(DATALENGTH(CAST([id] AS nvarchar(max))) AS nvarchar(max)) + N':' + CAST([id] AS nvarchar(max)), N'~') COLLATE Latin1_General_100_BIN2 +
    coalesce(CAST(DATALENGTH(CONVERT(nvarchar(max), [price], 3)) AS nvarchar(max)) + N':' + CONVERT(nvarchar(max), [price], 3), N'~') COLLATE Latin1_General_100_BIN2 +
    coalesce(CAST(DATALENGTH(CAST([note] AS nvarchar(max))) AS nvarchar(max)) + N':' + CAST([note] AS nvarchar(max)), N'~') COLLATE Latin1_General_100_BIN2), 1, 8) AS bigint) AS decimal(38, 0))), 0) AS varchar(40))
    FROM [mart].[fct_sales]
    WHERE [sold_at] >= CAST('2026-05-12 00:00:00+00:00' AS datetimeoffset(6))
    AND [sold_at] < CAST('2026-05-13 00:00:00+00:00' AS datetimeoffset(6))

SELECT SYSUTCDATETIME()

INSERT INTO [backfill].[load_audit] ([audit_id], [table_name], [partition_key], [window_start], [window_end], [dimensions], [outcome], [strategy], [lane], [rows_before], [rows_after], [checksum], [reason], [ticket], [launched_by], [run_id], [backfill_id], [code_version], [source_read_at], [started_at], [committed_at], [seconds], [cost], [detail])
    SELECT N'audit-id', N'mart.fct_sales', N'2026-05-12', CAST('2026-05-12 00:00:00+00:00' AS datetimeoffset(6)), CAST('2026-05-13 00:00:00+00:00' AS datetimeoffset(6)), N'{}', N'committed', N'recompute', N'live', 2, 2, N'392288196327931801', NULL, NULL, NULL, N'a-run', NULL, NULL, CAST('2026-06-01 12:00:00+00:00' AS datetimeoffset(6)), CAST('2026-06-01 12:00:00+00:00' AS datetimeoffset(6)), CAST('2026-06-01 12:00:00+00:00' AS datetimeoffset(6)), 0.1, NULL, NULL

COMMIT TRANSACTION

IF OBJECT_ID(N'[backfill].[backfill_stage_1]') IS NOT NULL
    DROP TABLE [backfill].[backfill_stage_1]

SELECT count(*)
    FROM [backfill].[load_audit]
    WHERE audit_id = N'audit-id'


-- two slices looked at by the checks

SELECT c.name, t.name, c.max_length, c.precision, c.scale
    FROM sys.columns AS c
    JOIN sys.types AS t ON t.user_type_id = c.user_type_id
    WHERE c.object_id = OBJECT_ID(N'[mart].[fct_sales]')
    ORDER BY c.column_id

SELECT c.name, t.name, c.max_length, c.precision, c.scale
    FROM sys.columns AS c
    JOIN sys.types AS t ON t.user_type_id = c.user_type_id
    WHERE c.object_id = OBJECT_ID(N'[backfill].[load_audit]')
    ORDER BY c.column_id

SELECT [audit_id], [table_name], [partition_key], [window_start], [window_end], [dimensions], [outcome], [strategy], [lane], [rows_before], [rows_after], [checksum], [reason], [ticket], [launched_by], [run_id], [backfill_id], [code_version], [source_read_at], [started_at], [committed_at], [seconds], [cost], [detail]
    FROM (SELECT [audit_id], [table_name], [partition_key], [window_start], [window_end], [dimensions], [outcome], [strategy], [lane], [rows_before], [rows_after], [checksum], [reason], [ticket], [launched_by], [run_id], [backfill_id], [code_version], [source_read_at], [started_at], [committed_at], [seconds], [cost], [detail], row_number() OVER (PARTITION BY [dimensions], [window_start], [window_end]
    ORDER BY [committed_at] DESC) AS newest_is_1
    FROM [backfill].[load_audit]
    WHERE lower(table_name) IN (N'mart.fct_sales', N'warehouse.mart.fct_sales')
    AND ([window_start] IS NULL OR ([window_start] < CAST('2026-05-13 00:00:00+00:00' AS datetimeoffset(6))
    AND [window_end] > CAST('2026-05-11 00:00:00+00:00' AS datetimeoffset(6))))
    AND [outcome] = 'committed') AS ranked
    WHERE newest_is_1 = 1

SELECT TOP (0) *
    FROM (
SELECT *
    FROM mart.src
) AS source_rows

SELECT CASE WHEN [sold_at] < CAST('2026-05-12 00:00:00+00:00' AS datetimeoffset(6)) THEN 0 ELSE 1 END, count(*), sum(CASE WHEN 1 = 0 THEN CAST(0 AS bigint) ELSE [price] END)
    FROM (
SELECT *
    FROM mart.src
) AS source_rows
    WHERE [sold_at] >= CAST('2026-05-11 00:00:00+00:00' AS datetimeoffset(6))
    AND [sold_at] < CAST('2026-05-13 00:00:00+00:00' AS datetimeoffset(6))
    GROUP BY CASE WHEN [sold_at] < CAST('2026-05-12 00:00:00+00:00' AS datetimeoffset(6)) THEN 0 ELSE 1 END

SELECT CASE WHEN [sold_at] < CAST('2026-05-12 00:00:00+00:00' AS datetimeoffset(6)) THEN 0 ELSE 1 END, count(*), count(DISTINCT [id]) + coalesce(max(CASE WHEN [id] IS NULL THEN 1 END), 0), sum(CASE WHEN 1 = 0 THEN CAST(0 AS bigint) ELSE [price] END), sum(CASE WHEN 1 = 0 THEN CAST(0 AS bigint) ELSE abs([price]) END)
    FROM [mart].[fct_sales]
    WHERE [sold_at] >= CAST('2026-05-11 00:00:00+00:00' AS datetimeoffset(6))
    AND [sold_at] < CAST('2026-05-13 00:00:00+00:00' AS datetimeoffset(6))
    GROUP BY CASE WHEN [sold_at] < CAST('2026-05-12 00:00:00+00:00' AS datetimeoffset(6)) THEN 0 ELSE 1 END


-- a slice that somebody else has

SET XACT_ABORT ON;
    SET DATEFORMAT ymd

SELECT CASE WHEN is_read_committed_snapshot_on = 1 THEN 0 ELSE 1 END
    FROM sys.databases
    WHERE name = DB_NAME()

SELECT c.name, t.name, c.max_length, c.precision, c.scale
    FROM sys.columns AS c
    JOIN sys.types AS t ON t.user_type_id = c.user_type_id
    WHERE c.object_id = OBJECT_ID(N'[backfill].[load_audit]')
    ORDER BY c.column_id

SELECT SYSUTCDATETIME()

SELECT o.type, p.name
    FROM sys.objects AS o LEFT
    JOIN sys.security_predicates AS f ON f.target_object_id = o.object_id
    AND f.predicate_type = 0 LEFT
    JOIN sys.security_policies AS p ON p.object_id = f.object_id
    AND p.is_enabled = 1
    WHERE o.object_id = OBJECT_ID(N'[mart].[fct_sales]')

SELECT count(*)
    FROM sys.fn_my_permissions(NULL, 'DATABASE')
    WHERE permission_name IN ('VIEW DEFINITION', 'ALTER ANY SECURITY POLICY', 'CONTROL')

SELECT c.name, t.name, c.max_length, c.precision, c.scale
    FROM sys.columns AS c
    JOIN sys.types AS t ON t.user_type_id = c.user_type_id
    WHERE c.object_id = OBJECT_ID(N'[backfill].[claim_f1024bc2acaa5ed5aa7420151b69c1c9]')
    ORDER BY c.column_id

DECLARE @make nvarchar(4000) = N'CREATE SCHEMA ' + QUOTENAME(N'backfill');
    IF SCHEMA_ID(N'backfill') IS NULL
    EXEC(@make)

SELECT name
    FROM sys.tables
    WHERE schema_id = SCHEMA_ID('backfill')
    AND name LIKE 'backfill[_]stage[_]%'
    AND create_date < DATEADD(hour, -48, GETDATE())

CREATE TABLE [backfill].[backfill_stage_1] ([sold_at] datetimeoffset(6) NULL, [id] bigint NULL, [price] float NULL, [note] nvarchar(4000) NULL) WITH (HEAP, DISTRIBUTION = ROUND_ROBIN)

BULK [backfill].[backfill_stage_1]

SELECT c.name, t.name, c.max_length, c.precision, c.scale
    FROM sys.columns AS c
    JOIN sys.types AS t ON t.user_type_id = c.user_type_id
    WHERE c.object_id = OBJECT_ID(N'[backfill].[backfill_stage_1]')
    ORDER BY c.column_id

SELECT c.name, t.name, c.max_length, c.precision, c.scale
    FROM sys.columns AS c
    JOIN sys.types AS t ON t.user_type_id = c.user_type_id
    WHERE c.object_id = OBJECT_ID(N'[mart].[fct_sales]')
    ORDER BY c.column_id

SELECT count(*),
    count(CASE WHEN [sold_at] >= CAST('2026-05-12 00:00:00+00:00' AS datetimeoffset(6))
    AND [sold_at] < CAST('2026-05-13 00:00:00+00:00' AS datetimeoffset(6)) THEN 1 END), count(coalesce(CASE WHEN [id] IS NOT NULL THEN 1 END, NULL)), CAST(coalesce(sum(CAST(CAST(SUBSTRING(HASHBYTES('SHA2_256',
    coalesce(CAST(DATALENGTH(CONVERT(nvarchar(max), CAST(SWITCHOFFSET([sold_at], '+00:00') AS datetime2), 126)) AS nvarchar(max)) + N':' + CONVERT(nvarchar(max), CAST(SWITCHOFFSET([sold_at], '+00:00') AS datetime2), 126), N'~') COLLATE Latin1_General_100_BIN2 +
    coalesce(CAST(DATALENGTH(CAST([id] AS nvarchar(max))) AS nvarchar(max)) + N':' + CAST([id] AS nvarchar(max)), N'~') COLLATE Latin1_General_100_BIN2 +
    coalesce(CAST(DATALENGTH(CONVERT(nvarchar(max), [price], 3)) AS nvarchar(max)) + N':' + CONVERT(nvarchar(max), [price], 3), N'~') COLLATE Latin1_General_100_BIN2 +
    coalesce(CAST(DATALENGTH(CAST([note] AS nvarchar(max))) AS nvarchar(max)) + N':' + CAST([note] AS nvarchar(max)), N'~') COLLATE Latin1_General_100_BIN2), 1, 8) AS bigint) AS decimal(38, 0))), 0) AS varchar(40))
    FROM (SELECT [sold_at] AS [sold_at], [id] AS [id], [price] AS [price], [note] AS [note]
    FROM [backfill].[backfill_stage_1]) AS staged

SELECT count(*)
    FROM (SELECT [id], count(*) AS copies
    FROM (SELECT [sold_at] AS [sold_at], [id] AS [id], [price] AS [price], [note] AS [note]
    FROM [backfill].[backfill_stage_1]) AS staged
    GROUP BY [id]
    HAVING count(*) > 1) AS twice

BEGIN TRANSACTION

UPDATE [backfill].[claim_f1024bc2acaa5ed5aa7420151b69c1c9]
    SET holder = N'second'

IF @@TRANCOUNT > 0 ROLLBACK TRANSACTION

IF OBJECT_ID(N'[backfill].[backfill_stage_1]') IS NOT NULL
    DROP TABLE [backfill].[backfill_stage_1]

SELECT c.name, t.name, c.max_length, c.precision, c.scale
    FROM sys.columns AS c
    JOIN sys.types AS t ON t.user_type_id = c.user_type_id
    WHERE c.object_id = OBJECT_ID(N'[mart].[fct_sales]')
    ORDER BY c.column_id

SELECT count(*)
    FROM [mart].[fct_sales]
    WHERE [sold_at] >= CAST('2026-05-12 00:00:00+00:00' AS datetimeoffset(6))
    AND [sold_at] < CAST('2026-05-13 00:00:00+00:00' AS datetimeoffset(6))

BEGIN TRANSACTION

SELECT SYSUTCDATETIME()

INSERT INTO [backfill].[load_audit] ([audit_id], [table_name], [partition_key], [window_start], [window_end], [dimensions], [outcome], [strategy], [lane], [rows_before], [rows_after], [checksum], [reason], [ticket], [launched_by], [run_id], [backfill_id], [code_version], [source_read_at], [started_at], [committed_at], [seconds], [cost], [detail])
    SELECT N'audit-id', N'mart.fct_sales', N'2026-05-12', CAST('2026-05-12 00:00:00+00:00' AS datetimeoffset(6)), CAST('2026-05-13 00:00:00+00:00' AS datetimeoffset(6)), N'{}', N'refused', N'recompute', N'live', 2, 2, N'', NULL, NULL, NULL, N'second', NULL, NULL, CAST('2026-06-01 12:00:00+00:00' AS datetimeoffset(6)), CAST('2026-06-01 12:00:00+00:00' AS datetimeoffset(6)), CAST('2026-06-01 12:00:00+00:00' AS datetimeoffset(6)), 0.1, NULL, N'{"error": "SliceBusy", "why": "mart.fct_sales 2026-05-12 is being rewritten by another writer, so nothing was changed: it still was after 0.2 s. Let that run finish, then launch this partition again."}'

COMMIT TRANSACTION

INSERT INTO [mart].[fct_sales] ([sold_at], [id], [price], [note])
    SELECT [sold_at] AS [sold_at], [id] AS [id], [price] AS [price], [note] AS [note]
    FROM [backfill].[backfill_stage_1]

SELECT count(*), CAST(coalesce(sum(CAST(CAST(SUBSTRING(HASHBYTES('SHA2_256',
    coalesce(CAST(DATALENGTH(CONVERT(nvarchar(max), CAST(SWITCHOFFSET([sold_at], '+00:00') AS datetime2), 126)) AS nvarchar(max)) + N':' + CONVERT(nvarchar(max), CAST(SWITCHOFFSET([sold_at], '+00:00') AS datetime2), 126), N'~') COLLATE Latin1_General_100_BIN2 +
    coalesce(CAST(DATALENGTH(CAST([id] AS nvarchar(max))) AS nvarchar(max)) + N':' + CAST([id] AS nvarchar(max)), N'~') COLLATE Latin1_General_100_BIN2 +
    coalesce(CAST(DATALENGTH(CONVERT(nvarchar(max), [price], 3)) AS nvarchar(max)) + N':' + CONVERT(nvarchar(max), [price], 3), N'~') COLLATE Latin1_General_100_BIN2 +
    coalesce(CAST(DATALENGTH(CAST([note] AS nvarchar(max))) AS nvarchar(max)) + N':' + CAST([note] AS nvarchar(max)), N'~') COLLATE Latin1_General_100_BIN2), 1, 8) AS bigint) AS decimal(38, 0))), 0) AS varchar(40))
    FROM [mart].[fct_sales]
    WHERE [sold_at] >= CAST('2026-05-12 00:00:00+00:00' AS datetimeoffset(6))
    AND [sold_at] < CAST('2026-05-13 00:00:00+00:00' AS datetimeoffset(6))

SELECT SYSUTCDATETIME()

INSERT INTO [backfill].[load_audit] ([audit_id], [table_name], [partition_key], [window_start], [window_end], [dimensions], [outcome], [strategy], [lane], [rows_before], [rows_after], [checksum], [reason], [ticket], [launched_by], [run_id], [backfill_id], [code_version], [source_read_at], [started_at], [committed_at], [seconds], [cost], [detail])
    SELECT N'audit-id', N'mart.fct_sales', N'2026-05-12', CAST('2026-05-12 00:00:00+00:00' AS datetimeoffset(6)), CAST('2026-05-13 00:00:00+00:00' AS datetimeoffset(6)), N'{}', N'committed', N'recompute', N'live', 2, 2, N'392288196327931801', NULL, NULL, NULL, N'a-run', NULL, NULL, CAST('2026-06-01 12:00:00+00:00' AS datetimeoffset(6)), CAST('2026-06-01 12:00:00+00:00' AS datetimeoffset(6)), CAST('2026-06-01 12:00:00+00:00' AS datetimeoffset(6)), 0.1, NULL, NULL

COMMIT TRANSACTION

IF OBJECT_ID(N'[backfill].[backfill_stage_1]') IS NOT NULL
    DROP TABLE [backfill].[backfill_stage_1]

SELECT count(*)
    FROM [backfill].[load_audit]
    WHERE audit_id = N'audit-id'
