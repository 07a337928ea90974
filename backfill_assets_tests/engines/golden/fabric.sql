-- the first slice: the table is made

SET DATEFORMAT ymd

SELECT c.name, t.name, c.max_length, c.precision, c.scale
    FROM sys.columns AS c
    JOIN sys.types AS t ON t.user_type_id = c.user_type_id
    WHERE c.object_id = OBJECT_ID('[backfill].[load_audit]')
    ORDER BY c.column_id

DECLARE @make varchar(8000) = 'CREATE SCHEMA ' + QUOTENAME('backfill');
    IF SCHEMA_ID('backfill') IS NULL
    EXEC(@make)

IF OBJECT_ID('[backfill].[load_audit]') IS NULL
    CREATE TABLE [backfill].[load_audit] ([audit_id] varchar(64) COLLATE Latin1_General_100_BIN2_UTF8, [table_name] varchar(800) COLLATE Latin1_General_100_BIN2_UTF8, [partition_key] varchar(8000) COLLATE Latin1_General_100_BIN2_UTF8, [window_start] datetime2(6), [window_end] datetime2(6), [dimensions] varchar(8000) COLLATE Latin1_General_100_BIN2_UTF8, [outcome] varchar(8000) COLLATE Latin1_General_100_BIN2_UTF8, [strategy] varchar(8000) COLLATE Latin1_General_100_BIN2_UTF8, [lane] varchar(8000) COLLATE Latin1_General_100_BIN2_UTF8, [rows_before] BIGINT, [rows_after] BIGINT, [checksum] varchar(8000) COLLATE Latin1_General_100_BIN2_UTF8, [reason] varchar(8000) COLLATE Latin1_General_100_BIN2_UTF8, [ticket] varchar(8000) COLLATE Latin1_General_100_BIN2_UTF8, [launched_by] varchar(8000) COLLATE Latin1_General_100_BIN2_UTF8, [run_id] varchar(8000) COLLATE Latin1_General_100_BIN2_UTF8, [backfill_id] varchar(8000) COLLATE Latin1_General_100_BIN2_UTF8, [code_version] varchar(8000) COLLATE Latin1_General_100_BIN2_UTF8, [source_read_at] datetime2(6), [started_at] datetime2(6), [committed_at] datetime2(6), [seconds] float, [cost] float, [detail] varchar(max) COLLATE Latin1_General_100_BIN2_UTF8)

SELECT SYSUTCDATETIME()

SELECT o.type, p.name
    FROM sys.objects AS o LEFT
    JOIN sys.security_predicates AS f ON f.target_object_id = o.object_id
    AND f.predicate_type = 0 LEFT
    JOIN sys.security_policies AS p ON p.object_id = f.object_id
    AND p.is_enabled = 1
    WHERE o.object_id = OBJECT_ID('[mart].[fct_sales]')

SELECT c.name, t.name, c.max_length, c.precision, c.scale
    FROM sys.columns AS c
    JOIN sys.types AS t ON t.user_type_id = c.user_type_id
    WHERE c.object_id = OBJECT_ID('[backfill].[claim_f1024bc2acaa5ed5aa7420151b69c1c9]')
    ORDER BY c.column_id

DECLARE @make varchar(8000) = 'CREATE SCHEMA ' + QUOTENAME('backfill');
    IF SCHEMA_ID('backfill') IS NULL
    EXEC(@make)

IF OBJECT_ID('[backfill].[claim_f1024bc2acaa5ed5aa7420151b69c1c9]') IS NULL
    CREATE TABLE [backfill].[claim_f1024bc2acaa5ed5aa7420151b69c1c9] (table_name varchar(8000), holder varchar(8000) NULL)

IF NOT EXISTS (SELECT 1
    FROM [backfill].[claim_f1024bc2acaa5ed5aa7420151b69c1c9]) INSERT INTO [backfill].[claim_f1024bc2acaa5ed5aa7420151b69c1c9] (table_name)
    VALUES ('[mart].[fct_sales]')

DECLARE @make varchar(8000) = 'CREATE SCHEMA ' + QUOTENAME('backfill');
    IF SCHEMA_ID('backfill') IS NULL
    EXEC(@make)

SELECT name
    FROM sys.tables
    WHERE schema_id = SCHEMA_ID('backfill')
    AND name LIKE 'backfill[_]stage[_]%'
    AND create_date < DATEADD(hour, -48, GETDATE())

CREATE TABLE [backfill].[backfill_stage_1] ([sold_at] datetime2(6) NULL, [id] bigint NULL, [price] float NULL, [note] varchar(8000) NULL)

BULK [backfill].[backfill_stage_1]

SELECT c.name, t.name, c.max_length, c.precision, c.scale
    FROM sys.columns AS c
    JOIN sys.types AS t ON t.user_type_id = c.user_type_id
    WHERE c.object_id = OBJECT_ID('[backfill].[backfill_stage_1]')
    ORDER BY c.column_id

SELECT c.name, t.name, c.max_length, c.precision, c.scale
    FROM sys.columns AS c
    JOIN sys.types AS t ON t.user_type_id = c.user_type_id
    WHERE c.object_id = OBJECT_ID('[mart].[fct_sales]')
    ORDER BY c.column_id

SELECT count(*),
    count(CASE WHEN [sold_at] >= CAST(CAST('2026-05-12 00:00:00+00:00' AS datetimeoffset(6)) AT TIME ZONE 'UTC' AS datetime2(6))
    AND [sold_at] < CAST(CAST('2026-05-13 00:00:00+00:00' AS datetimeoffset(6)) AT TIME ZONE 'UTC' AS datetime2(6)) THEN 1 END), count(coalesce(CASE WHEN [id] IS NOT NULL THEN 1 END, NULL)), CAST(coalesce(sum(CAST(CAST(SUBSTRING(HASHBYTES('SHA2_256',
    coalesce(CAST(DATALENGTH(CONVERT(varchar(max), [sold_at], 126)) AS varchar(max)) + ':' + CONVERT(varchar(max), [sold_at], 126), '~') COLLATE Latin1_General_100_BIN2_UTF8 +
    coalesce(CAST(DATALENGTH(CAST([id] AS varchar(max))) AS varchar(max)) + ':' + CAST([id] AS varchar(max)), '~') COLLATE Latin1_General_100_BIN2_UTF8 +
    coalesce(CAST(DATALENGTH(CONVERT(varchar(max), [price], 3)) AS varchar(max)) + ':' + CONVERT(varchar(max), [price], 3), '~') COLLATE Latin1_General_100_BIN2_UTF8 +
    coalesce(CAST(DATALENGTH(CAST([note] AS varchar(max))) AS varchar(max)) + ':' + CAST([note] AS varchar(max)), '~') COLLATE Latin1_General_100_BIN2_UTF8), 1, 8) AS bigint) AS decimal(38, 0))), 0) AS varchar(40))
    FROM (SELECT [sold_at] AS [sold_at], [id] AS [id], [price] AS [price], [note] AS [note]
    FROM [backfill].[backfill_stage_1]) AS staged

SELECT count(*)
    FROM (SELECT [id], count(*) AS copies
    FROM (SELECT [sold_at] AS [sold_at], [id] AS [id], [price] AS [price], [note] AS [note]
    FROM [backfill].[backfill_stage_1]) AS staged
    GROUP BY [id]
    HAVING count(*) > 1) AS twice

DECLARE @make varchar(8000) = 'CREATE SCHEMA ' + QUOTENAME('mart');
    IF SCHEMA_ID('mart') IS NULL
    EXEC(@make)

IF OBJECT_ID('[mart].[fct_sales]') IS NULL
    CREATE TABLE [mart].[fct_sales] ([sold_at] datetime2(6), [id] bigint, [price] float, [note] varchar(8000))

SELECT c.name, t.name, c.max_length, c.precision, c.scale
    FROM sys.columns AS c
    JOIN sys.types AS t ON t.user_type_id = c.user_type_id
    WHERE c.object_id = OBJECT_ID('[backfill].[backfill_stage_1]')
    ORDER BY c.column_id

SELECT c.name, t.name, c.max_length, c.precision, c.scale
    FROM sys.columns AS c
    JOIN sys.types AS t ON t.user_type_id = c.user_type_id
    WHERE c.object_id = OBJECT_ID('[mart].[fct_sales]')
    ORDER BY c.column_id

SELECT count(*),
    count(CASE WHEN [sold_at] >= CAST(CAST('2026-05-12 00:00:00+00:00' AS datetimeoffset(6)) AT TIME ZONE 'UTC' AS datetime2(6))
    AND [sold_at] < CAST(CAST('2026-05-13 00:00:00+00:00' AS datetimeoffset(6)) AT TIME ZONE 'UTC' AS datetime2(6)) THEN 1 END), count(coalesce(CASE WHEN [id] IS NOT NULL THEN 1 END, NULL)), CAST(coalesce(sum(CAST(CAST(SUBSTRING(HASHBYTES('SHA2_256',
    coalesce(CAST(DATALENGTH(CONVERT(varchar(max), [sold_at], 126)) AS varchar(max)) + ':' + CONVERT(varchar(max), [sold_at], 126), '~') COLLATE Latin1_General_100_BIN2_UTF8 +
    coalesce(CAST(DATALENGTH(CAST([id] AS varchar(max))) AS varchar(max)) + ':' + CAST([id] AS varchar(max)), '~') COLLATE Latin1_General_100_BIN2_UTF8 +
    coalesce(CAST(DATALENGTH(CONVERT(varchar(max), [price], 3)) AS varchar(max)) + ':' + CONVERT(varchar(max), [price], 3), '~') COLLATE Latin1_General_100_BIN2_UTF8 +
    coalesce(CAST(DATALENGTH(CAST([note] AS varchar(max))) AS varchar(max)) + ':' + CAST([note] AS varchar(max)), '~') COLLATE Latin1_General_100_BIN2_UTF8), 1, 8) AS bigint) AS decimal(38, 0))), 0) AS varchar(40))
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
    SET holder = 'a-run'

SELECT [run_id], source_read_at, [dimensions]
    FROM [backfill].[load_audit]
    WHERE table_name IN ('mart.fct_sales', 'warehouse.mart.fct_sales')
    AND ([window_start] IS NULL OR ([window_start] < CAST(CAST('2026-05-13 00:00:00+00:00' AS datetimeoffset(6)) AT TIME ZONE 'UTC' AS datetime2(6))
    AND [window_end] > CAST(CAST('2026-05-12 00:00:00+00:00' AS datetimeoffset(6)) AT TIME ZONE 'UTC' AS datetime2(6))))
    AND [outcome] = 'committed'
    AND source_read_at > CAST(CAST('2026-06-01 12:00:00+00:00' AS datetimeoffset(6)) AT TIME ZONE 'UTC' AS datetime2(6))

DELETE
    FROM [mart].[fct_sales]
    WHERE [sold_at] >= CAST(CAST('2026-05-12 00:00:00+00:00' AS datetimeoffset(6)) AT TIME ZONE 'UTC' AS datetime2(6))
    AND [sold_at] < CAST(CAST('2026-05-13 00:00:00+00:00' AS datetimeoffset(6)) AT TIME ZONE 'UTC' AS datetime2(6))

INSERT INTO [mart].[fct_sales] ([sold_at], [id], [price], [note])
    SELECT [sold_at] AS [sold_at], [id] AS [id], [price] AS [price], [note] AS [note]
    FROM [backfill].[backfill_stage_1]

SELECT count(*), CAST(coalesce(sum(CAST(CAST(SUBSTRING(HASHBYTES('SHA2_256',
    coalesce(CAST(DATALENGTH(CONVERT(varchar(max), [sold_at], 126)) AS varchar(max)) + ':' + CONVERT(varchar(max), [sold_at], 126), '~') COLLATE Latin1_General_100_BIN2_UTF8 +
    coalesce(CAST(DATALENGTH(CAST([id] AS varchar(max))) AS varchar(max)) + ':' + CAST([id] AS varchar(max)), '~') COLLATE Latin1_General_100_BIN2_UTF8 +
    coalesce(CAST(DATALENGTH(CONVERT(varchar(max), [price], 3)) AS varchar(max)) + ':' + CONVERT(varchar(max), [price], 3), '~') COLLATE Latin1_General_100_BIN2_UTF8 +
    coalesce(CAST(DATALENGTH(CAST([note] AS varchar(max))) AS varchar(max)) + ':' + CAST([note] AS varchar(max)), '~') COLLATE Latin1_General_100_BIN2_UTF8), 1, 8) AS bigint) AS decimal(38, 0))), 0) AS varchar(40))
    FROM [mart].[fct_sales]
    WHERE [sold_at] >= CAST(CAST('2026-05-12 00:00:00+00:00' AS datetimeoffset(6)) AT TIME ZONE 'UTC' AS datetime2(6))
    AND [sold_at] < CAST(CAST('2026-05-13 00:00:00+00:00' AS datetimeoffset(6)) AT TIME ZONE 'UTC' AS datetime2(6))

SELECT SYSUTCDATETIME()

INSERT INTO [backfill].[load_audit] ([audit_id], [table_name], [partition_key], [window_start], [window_end], [dimensions], [outcome], [strategy], [lane], [rows_before], [rows_after], [checksum], [reason], [ticket], [launched_by], [run_id], [backfill_id], [code_version], [source_read_at], [started_at], [committed_at], [seconds], [cost], [detail])
    SELECT 'audit-id', 'mart.fct_sales', '2026-05-12', CAST(CAST('2026-05-12 00:00:00+00:00' AS datetimeoffset(6)) AT TIME ZONE 'UTC' AS datetime2(6)), CAST(CAST('2026-05-13 00:00:00+00:00' AS datetimeoffset(6)) AT TIME ZONE 'UTC' AS datetime2(6)), '{}', 'committed', 'recompute', 'live', 0, 2, '392288196327931801', NULL, NULL, NULL, 'a-run', NULL, NULL, CAST(CAST('2026-06-01 12:00:00+00:00' AS datetimeoffset(6)) AT TIME ZONE 'UTC' AS datetime2(6)), CAST(CAST('2026-06-01 12:00:00+00:00' AS datetimeoffset(6)) AT TIME ZONE 'UTC' AS datetime2(6)), CAST(CAST('2026-06-01 12:00:00+00:00' AS datetimeoffset(6)) AT TIME ZONE 'UTC' AS datetime2(6)), 0.1, NULL, NULL

COMMIT TRANSACTION

IF OBJECT_ID('[backfill].[backfill_stage_1]') IS NOT NULL
    DROP TABLE [backfill].[backfill_stage_1]

SELECT count(*)
    FROM [backfill].[load_audit]
    WHERE audit_id = 'audit-id'


-- a slice of a table that is there, in a session that has begun

SELECT SYSUTCDATETIME()

SELECT o.type, p.name
    FROM sys.objects AS o LEFT
    JOIN sys.security_predicates AS f ON f.target_object_id = o.object_id
    AND f.predicate_type = 0 LEFT
    JOIN sys.security_policies AS p ON p.object_id = f.object_id
    AND p.is_enabled = 1
    WHERE o.object_id = OBJECT_ID('[mart].[fct_sales]')

CREATE TABLE [backfill].[backfill_stage_1] ([sold_at] datetime2(6) NULL, [id] bigint NULL, [price] float NULL, [note] varchar(8000) NULL)

BULK [backfill].[backfill_stage_1]

SELECT c.name, t.name, c.max_length, c.precision, c.scale
    FROM sys.columns AS c
    JOIN sys.types AS t ON t.user_type_id = c.user_type_id
    WHERE c.object_id = OBJECT_ID('[backfill].[backfill_stage_1]')
    ORDER BY c.column_id

SELECT c.name, t.name, c.max_length, c.precision, c.scale
    FROM sys.columns AS c
    JOIN sys.types AS t ON t.user_type_id = c.user_type_id
    WHERE c.object_id = OBJECT_ID('[mart].[fct_sales]')
    ORDER BY c.column_id

SELECT count(*),
    count(CASE WHEN [sold_at] >= CAST(CAST('2026-05-12 00:00:00+00:00' AS datetimeoffset(6)) AT TIME ZONE 'UTC' AS datetime2(6))
    AND [sold_at] < CAST(CAST('2026-05-13 00:00:00+00:00' AS datetimeoffset(6)) AT TIME ZONE 'UTC' AS datetime2(6)) THEN 1 END), count(coalesce(CASE WHEN [id] IS NOT NULL THEN 1 END, NULL)), CAST(coalesce(sum(CAST(CAST(SUBSTRING(HASHBYTES('SHA2_256',
    coalesce(CAST(DATALENGTH(CONVERT(varchar(max), [sold_at], 126)) AS varchar(max)) + ':' + CONVERT(varchar(max), [sold_at], 126), '~') COLLATE Latin1_General_100_BIN2_UTF8 +
    coalesce(CAST(DATALENGTH(CAST([id] AS varchar(max))) AS varchar(max)) + ':' + CAST([id] AS varchar(max)), '~') COLLATE Latin1_General_100_BIN2_UTF8 +
    coalesce(CAST(DATALENGTH(CONVERT(varchar(max), [price], 3)) AS varchar(max)) + ':' + CONVERT(varchar(max), [price], 3), '~') COLLATE Latin1_General_100_BIN2_UTF8 +
    coalesce(CAST(DATALENGTH(CAST([note] AS varchar(max))) AS varchar(max)) + ':' + CAST([note] AS varchar(max)), '~') COLLATE Latin1_General_100_BIN2_UTF8), 1, 8) AS bigint) AS decimal(38, 0))), 0) AS varchar(40))
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
    SET holder = 'a-run'

SELECT [run_id], source_read_at, [dimensions]
    FROM [backfill].[load_audit]
    WHERE table_name IN ('mart.fct_sales', 'warehouse.mart.fct_sales')
    AND ([window_start] IS NULL OR ([window_start] < CAST(CAST('2026-05-13 00:00:00+00:00' AS datetimeoffset(6)) AT TIME ZONE 'UTC' AS datetime2(6))
    AND [window_end] > CAST(CAST('2026-05-12 00:00:00+00:00' AS datetimeoffset(6)) AT TIME ZONE 'UTC' AS datetime2(6))))
    AND [outcome] = 'committed'
    AND source_read_at > CAST(CAST('2026-06-01 12:00:00+00:00' AS datetimeoffset(6)) AT TIME ZONE 'UTC' AS datetime2(6))

DELETE
    FROM [mart].[fct_sales]
    WHERE [sold_at] >= CAST(CAST('2026-05-12 00:00:00+00:00' AS datetimeoffset(6)) AT TIME ZONE 'UTC' AS datetime2(6))
    AND [sold_at] < CAST(CAST('2026-05-13 00:00:00+00:00' AS datetimeoffset(6)) AT TIME ZONE 'UTC' AS datetime2(6))

INSERT INTO [mart].[fct_sales] ([sold_at], [id], [price], [note])
    SELECT [sold_at] AS [sold_at], [id] AS [id], [price] AS [price], [note] AS [note]
    FROM [backfill].[backfill_stage_1]

SELECT count(*), CAST(coalesce(sum(CAST(CAST(SUBSTRING(HASHBYTES('SHA2_256',
    coalesce(CAST(DATALENGTH(CONVERT(varchar(max), [sold_at], 126)) AS varchar(max)) + ':' + CONVERT(varchar(max), [sold_at], 126), '~') COLLATE Latin1_General_100_BIN2_UTF8 +
    coalesce(CAST(DATALENGTH(CAST([id] AS varchar(max))) AS varchar(max)) + ':' + CAST([id] AS varchar(max)), '~') COLLATE Latin1_General_100_BIN2_UTF8 +
    coalesce(CAST(DATALENGTH(CONVERT(varchar(max), [price], 3)) AS varchar(max)) + ':' + CONVERT(varchar(max), [price], 3), '~') COLLATE Latin1_General_100_BIN2_UTF8 +
    coalesce(CAST(DATALENGTH(CAST([note] AS varchar(max))) AS varchar(max)) + ':' + CAST([note] AS varchar(max)), '~') COLLATE Latin1_General_100_BIN2_UTF8), 1, 8) AS bigint) AS decimal(38, 0))), 0) AS varchar(40))
    FROM [mart].[fct_sales]
    WHERE [sold_at] >= CAST(CAST('2026-05-12 00:00:00+00:00' AS datetimeoffset(6)) AT TIME ZONE 'UTC' AS datetime2(6))
    AND [sold_at] < CAST(CAST('2026-05-13 00:00:00+00:00' AS datetimeoffset(6)) AT TIME ZONE 'UTC' AS datetime2(6))

SELECT SYSUTCDATETIME()

INSERT INTO [backfill].[load_audit] ([audit_id], [table_name], [partition_key], [window_start], [window_end], [dimensions], [outcome], [strategy], [lane], [rows_before], [rows_after], [checksum], [reason], [ticket], [launched_by], [run_id], [backfill_id], [code_version], [source_read_at], [started_at], [committed_at], [seconds], [cost], [detail])
    SELECT 'audit-id', 'mart.fct_sales', '2026-05-12', CAST(CAST('2026-05-12 00:00:00+00:00' AS datetimeoffset(6)) AT TIME ZONE 'UTC' AS datetime2(6)), CAST(CAST('2026-05-13 00:00:00+00:00' AS datetimeoffset(6)) AT TIME ZONE 'UTC' AS datetime2(6)), '{}', 'committed', 'recompute', 'live', 2, 2, '392288196327931801', NULL, NULL, NULL, 'a-run', NULL, NULL, CAST(CAST('2026-06-01 12:00:00+00:00' AS datetimeoffset(6)) AT TIME ZONE 'UTC' AS datetime2(6)), CAST(CAST('2026-06-01 12:00:00+00:00' AS datetimeoffset(6)) AT TIME ZONE 'UTC' AS datetime2(6)), CAST(CAST('2026-06-01 12:00:00+00:00' AS datetimeoffset(6)) AT TIME ZONE 'UTC' AS datetime2(6)), 0.1, NULL, NULL

COMMIT TRANSACTION

IF OBJECT_ID('[backfill].[backfill_stage_1]') IS NOT NULL
    DROP TABLE [backfill].[backfill_stage_1]

SELECT count(*)
    FROM [backfill].[load_audit]
    WHERE audit_id = 'audit-id'


-- the same from a query

SELECT SYSUTCDATETIME()

SELECT o.type, p.name
    FROM sys.objects AS o LEFT
    JOIN sys.security_predicates AS f ON f.target_object_id = o.object_id
    AND f.predicate_type = 0 LEFT
    JOIN sys.security_policies AS p ON p.object_id = f.object_id
    AND p.is_enabled = 1
    WHERE o.object_id = OBJECT_ID('[mart].[fct_sales]')

WITH s AS (SELECT *
    FROM mart.src)
    SELECT TOP 0 *
    FROM (SELECT [sold_at] AS [sold_at]
    FROM s
    WHERE [sold_at] IS NULL) AS source_column

CREATE TABLE [backfill].[backfill_stage_1] AS WITH s AS (SELECT *
    FROM mart.src)
    SELECT *
    FROM s
    WHERE [sold_at] >= CAST('2026-05-12 00:00:00' AS DATETIME2(6))
    AND [sold_at] < CAST('2026-05-13 00:00:00' AS DATETIME2(6))

SELECT c.name, t.name, c.max_length, c.precision, c.scale
    FROM sys.columns AS c
    JOIN sys.types AS t ON t.user_type_id = c.user_type_id
    WHERE c.object_id = OBJECT_ID('[backfill].[backfill_stage_1]')
    ORDER BY c.column_id

SELECT c.name, t.name, c.max_length, c.precision, c.scale
    FROM sys.columns AS c
    JOIN sys.types AS t ON t.user_type_id = c.user_type_id
    WHERE c.object_id = OBJECT_ID('[mart].[fct_sales]')
    ORDER BY c.column_id

SELECT count(*),
    count(CASE WHEN [sold_at] >= CAST(CAST('2026-05-12 00:00:00+00:00' AS datetimeoffset(6)) AT TIME ZONE 'UTC' AS datetime2(6))
    AND [sold_at] < CAST(CAST('2026-05-13 00:00:00+00:00' AS datetimeoffset(6)) AT TIME ZONE 'UTC' AS datetime2(6)) THEN 1 END), count(coalesce(CASE WHEN [id] IS NOT NULL THEN 1 END, NULL)), CAST(coalesce(sum(CAST(CAST(SUBSTRING(HASHBYTES('SHA2_256',
    coalesce(CAST(DATALENGTH(CONVERT(varchar(max), [sold_at], 126)) AS varchar(max)) + ':' + CONVERT(varchar(max), [sold_at], 126), '~') COLLATE Latin1_General_100_BIN2_UTF8 +
    coalesce(CAST(DATALENGTH(CAST([id] AS varchar(max))) AS varchar(max)) + ':' + CAST([id] AS varchar(max)), '~') COLLATE Latin1_General_100_BIN2_UTF8 +
    coalesce(CAST(DATALENGTH(CONVERT(varchar(max), [price], 3)) AS varchar(max)) + ':' + CONVERT(varchar(max), [price], 3), '~') COLLATE Latin1_General_100_BIN2_UTF8 +
    coalesce(CAST(DATALENGTH(CAST([note] AS varchar(max))) AS varchar(max)) + ':' + CAST([note] AS varchar(max)), '~') COLLATE Latin1_General_100_BIN2_UTF8), 1, 8) AS bigint) AS decimal(38, 0))), 0) AS varchar(40))
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
    SET holder = 'a-run'

SELECT [run_id], source_read_at, [dimensions]
    FROM [backfill].[load_audit]
    WHERE table_name IN ('mart.fct_sales', 'warehouse.mart.fct_sales')
    AND ([window_start] IS NULL OR ([window_start] < CAST(CAST('2026-05-13 00:00:00+00:00' AS datetimeoffset(6)) AT TIME ZONE 'UTC' AS datetime2(6))
    AND [window_end] > CAST(CAST('2026-05-12 00:00:00+00:00' AS datetimeoffset(6)) AT TIME ZONE 'UTC' AS datetime2(6))))
    AND [outcome] = 'committed'
    AND source_read_at > CAST(CAST('2026-06-01 12:00:00+00:00' AS datetimeoffset(6)) AT TIME ZONE 'UTC' AS datetime2(6))

DELETE
    FROM [mart].[fct_sales]
    WHERE [sold_at] >= CAST(CAST('2026-05-12 00:00:00+00:00' AS datetimeoffset(6)) AT TIME ZONE 'UTC' AS datetime2(6))
    AND [sold_at] < CAST(CAST('2026-05-13 00:00:00+00:00' AS datetimeoffset(6)) AT TIME ZONE 'UTC' AS datetime2(6))

INSERT INTO [mart].[fct_sales] ([sold_at], [id], [price], [note])
    SELECT [sold_at] AS [sold_at], [id] AS [id], [price] AS [price], [note] AS [note]
    FROM [backfill].[backfill_stage_1]

SELECT count(*), CAST(coalesce(sum(CAST(CAST(SUBSTRING(HASHBYTES('SHA2_256',
    coalesce(CAST(DATALENGTH(CONVERT(varchar(max), [sold_at], 126)) AS varchar(max)) + ':' + CONVERT(varchar(max), [sold_at], 126), '~') COLLATE Latin1_General_100_BIN2_UTF8 +
    coalesce(CAST(DATALENGTH(CAST([id] AS varchar(max))) AS varchar(max)) + ':' + CAST([id] AS varchar(max)), '~') COLLATE Latin1_General_100_BIN2_UTF8 +
    coalesce(CAST(DATALENGTH(CONVERT(varchar(max), [price], 3)) AS varchar(max)) + ':' + CONVERT(varchar(max), [price], 3), '~') COLLATE Latin1_General_100_BIN2_UTF8 +
    coalesce(CAST(DATALENGTH(CAST([note] AS varchar(max))) AS varchar(max)) + ':' + CAST([note] AS varchar(max)), '~') COLLATE Latin1_General_100_BIN2_UTF8), 1, 8) AS bigint) AS decimal(38, 0))), 0) AS varchar(40))
    FROM [mart].[fct_sales]
    WHERE [sold_at] >= CAST(CAST('2026-05-12 00:00:00+00:00' AS datetimeoffset(6)) AT TIME ZONE 'UTC' AS datetime2(6))
    AND [sold_at] < CAST(CAST('2026-05-13 00:00:00+00:00' AS datetimeoffset(6)) AT TIME ZONE 'UTC' AS datetime2(6))

SELECT SYSUTCDATETIME()

INSERT INTO [backfill].[load_audit] ([audit_id], [table_name], [partition_key], [window_start], [window_end], [dimensions], [outcome], [strategy], [lane], [rows_before], [rows_after], [checksum], [reason], [ticket], [launched_by], [run_id], [backfill_id], [code_version], [source_read_at], [started_at], [committed_at], [seconds], [cost], [detail])
    SELECT 'audit-id', 'mart.fct_sales', '2026-05-12', CAST(CAST('2026-05-12 00:00:00+00:00' AS datetimeoffset(6)) AT TIME ZONE 'UTC' AS datetime2(6)), CAST(CAST('2026-05-13 00:00:00+00:00' AS datetimeoffset(6)) AT TIME ZONE 'UTC' AS datetime2(6)), '{}', 'committed', 'recompute', 'live', 2, 2, '392288196327931801', NULL, NULL, NULL, 'a-run', NULL, NULL, CAST(CAST('2026-06-01 12:00:00+00:00' AS datetimeoffset(6)) AT TIME ZONE 'UTC' AS datetime2(6)), CAST(CAST('2026-06-01 12:00:00+00:00' AS datetimeoffset(6)) AT TIME ZONE 'UTC' AS datetime2(6)), CAST(CAST('2026-06-01 12:00:00+00:00' AS datetimeoffset(6)) AT TIME ZONE 'UTC' AS datetime2(6)), 0.1, NULL, NULL

COMMIT TRANSACTION

IF OBJECT_ID('[backfill].[backfill_stage_1]') IS NOT NULL
    DROP TABLE [backfill].[backfill_stage_1]

SELECT count(*)
    FROM [backfill].[load_audit]
    WHERE audit_id = 'audit-id'


-- two slices looked at by the checks

SELECT c.name, t.name, c.max_length, c.precision, c.scale
    FROM sys.columns AS c
    JOIN sys.types AS t ON t.user_type_id = c.user_type_id
    WHERE c.object_id = OBJECT_ID('[mart].[fct_sales]')
    ORDER BY c.column_id

SELECT c.name, t.name, c.max_length, c.precision, c.scale
    FROM sys.columns AS c
    JOIN sys.types AS t ON t.user_type_id = c.user_type_id
    WHERE c.object_id = OBJECT_ID('[backfill].[load_audit]')
    ORDER BY c.column_id

SELECT [audit_id], [table_name], [partition_key], [window_start], [window_end], [dimensions], [outcome], [strategy], [lane], [rows_before], [rows_after], [checksum], [reason], [ticket], [launched_by], [run_id], [backfill_id], [code_version], [source_read_at], [started_at], [committed_at], [seconds], [cost], [detail]
    FROM (SELECT [audit_id], [table_name], [partition_key], [window_start], [window_end], [dimensions], [outcome], [strategy], [lane], [rows_before], [rows_after], [checksum], [reason], [ticket], [launched_by], [run_id], [backfill_id], [code_version], [source_read_at], [started_at], [committed_at], [seconds], [cost], [detail], row_number() OVER (PARTITION BY [dimensions], [window_start], [window_end]
    ORDER BY [committed_at] DESC) AS newest_is_1
    FROM [backfill].[load_audit]
    WHERE table_name IN ('mart.fct_sales', 'warehouse.mart.fct_sales')
    AND ([window_start] IS NULL OR ([window_start] < CAST(CAST('2026-05-13 00:00:00+00:00' AS datetimeoffset(6)) AT TIME ZONE 'UTC' AS datetime2(6))
    AND [window_end] > CAST(CAST('2026-05-11 00:00:00+00:00' AS datetimeoffset(6)) AT TIME ZONE 'UTC' AS datetime2(6))))
    AND [outcome] = 'committed') AS ranked
    WHERE newest_is_1 = 1

SELECT TOP (0) *
    FROM (
SELECT *
    FROM mart.src
) AS source_rows

SELECT CAST([sold_at] AS DATE), count(*), sum(CASE WHEN 1 = 0 THEN CAST(0 AS bigint) ELSE [price] END)
    FROM (
SELECT *
    FROM mart.src
) AS source_rows
    WHERE [sold_at] >= CAST('2026-05-11 00:00:00' AS datetime2(6))
    AND [sold_at] < CAST('2026-05-13 00:00:00' AS datetime2(6))
    GROUP BY CAST([sold_at] AS DATE)

SELECT CASE WHEN [sold_at] < CAST(CAST('2026-05-12 00:00:00+00:00' AS datetimeoffset(6)) AT TIME ZONE 'UTC' AS datetime2(6)) THEN 0 ELSE 1 END, count(*), count(DISTINCT [id]) + coalesce(max(CASE WHEN [id] IS NULL THEN 1 END), 0), sum(CASE WHEN 1 = 0 THEN CAST(0 AS bigint) ELSE [price] END), sum(CASE WHEN 1 = 0 THEN CAST(0 AS bigint) ELSE abs([price]) END)
    FROM [mart].[fct_sales]
    WHERE [sold_at] >= CAST(CAST('2026-05-11 00:00:00+00:00' AS datetimeoffset(6)) AT TIME ZONE 'UTC' AS datetime2(6))
    AND [sold_at] < CAST(CAST('2026-05-13 00:00:00+00:00' AS datetimeoffset(6)) AT TIME ZONE 'UTC' AS datetime2(6))
    GROUP BY CASE WHEN [sold_at] < CAST(CAST('2026-05-12 00:00:00+00:00' AS datetimeoffset(6)) AT TIME ZONE 'UTC' AS datetime2(6)) THEN 0 ELSE 1 END


-- a slice that somebody else has

SET DATEFORMAT ymd

SELECT c.name, t.name, c.max_length, c.precision, c.scale
    FROM sys.columns AS c
    JOIN sys.types AS t ON t.user_type_id = c.user_type_id
    WHERE c.object_id = OBJECT_ID('[backfill].[load_audit]')
    ORDER BY c.column_id

SELECT SYSUTCDATETIME()

SELECT o.type, p.name
    FROM sys.objects AS o LEFT
    JOIN sys.security_predicates AS f ON f.target_object_id = o.object_id
    AND f.predicate_type = 0 LEFT
    JOIN sys.security_policies AS p ON p.object_id = f.object_id
    AND p.is_enabled = 1
    WHERE o.object_id = OBJECT_ID('[mart].[fct_sales]')

SELECT count(*)
    FROM sys.fn_my_permissions(NULL, 'DATABASE')
    WHERE permission_name IN ('VIEW DEFINITION', 'ALTER ANY SECURITY POLICY', 'CONTROL')

SELECT c.name, t.name, c.max_length, c.precision, c.scale
    FROM sys.columns AS c
    JOIN sys.types AS t ON t.user_type_id = c.user_type_id
    WHERE c.object_id = OBJECT_ID('[backfill].[claim_f1024bc2acaa5ed5aa7420151b69c1c9]')
    ORDER BY c.column_id

DECLARE @make varchar(8000) = 'CREATE SCHEMA ' + QUOTENAME('backfill');
    IF SCHEMA_ID('backfill') IS NULL
    EXEC(@make)

SELECT name
    FROM sys.tables
    WHERE schema_id = SCHEMA_ID('backfill')
    AND name LIKE 'backfill[_]stage[_]%'
    AND create_date < DATEADD(hour, -48, GETDATE())

CREATE TABLE [backfill].[backfill_stage_1] ([sold_at] datetime2(6) NULL, [id] bigint NULL, [price] float NULL, [note] varchar(8000) NULL)

BULK [backfill].[backfill_stage_1]

SELECT c.name, t.name, c.max_length, c.precision, c.scale
    FROM sys.columns AS c
    JOIN sys.types AS t ON t.user_type_id = c.user_type_id
    WHERE c.object_id = OBJECT_ID('[backfill].[backfill_stage_1]')
    ORDER BY c.column_id

SELECT c.name, t.name, c.max_length, c.precision, c.scale
    FROM sys.columns AS c
    JOIN sys.types AS t ON t.user_type_id = c.user_type_id
    WHERE c.object_id = OBJECT_ID('[mart].[fct_sales]')
    ORDER BY c.column_id

SELECT count(*),
    count(CASE WHEN [sold_at] >= CAST(CAST('2026-05-12 00:00:00+00:00' AS datetimeoffset(6)) AT TIME ZONE 'UTC' AS datetime2(6))
    AND [sold_at] < CAST(CAST('2026-05-13 00:00:00+00:00' AS datetimeoffset(6)) AT TIME ZONE 'UTC' AS datetime2(6)) THEN 1 END), count(coalesce(CASE WHEN [id] IS NOT NULL THEN 1 END, NULL)), CAST(coalesce(sum(CAST(CAST(SUBSTRING(HASHBYTES('SHA2_256',
    coalesce(CAST(DATALENGTH(CONVERT(varchar(max), [sold_at], 126)) AS varchar(max)) + ':' + CONVERT(varchar(max), [sold_at], 126), '~') COLLATE Latin1_General_100_BIN2_UTF8 +
    coalesce(CAST(DATALENGTH(CAST([id] AS varchar(max))) AS varchar(max)) + ':' + CAST([id] AS varchar(max)), '~') COLLATE Latin1_General_100_BIN2_UTF8 +
    coalesce(CAST(DATALENGTH(CONVERT(varchar(max), [price], 3)) AS varchar(max)) + ':' + CONVERT(varchar(max), [price], 3), '~') COLLATE Latin1_General_100_BIN2_UTF8 +
    coalesce(CAST(DATALENGTH(CAST([note] AS varchar(max))) AS varchar(max)) + ':' + CAST([note] AS varchar(max)), '~') COLLATE Latin1_General_100_BIN2_UTF8), 1, 8) AS bigint) AS decimal(38, 0))), 0) AS varchar(40))
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
    SET holder = 'second'

SELECT @@ERROR

IF @@TRANCOUNT > 0 ROLLBACK TRANSACTION

IF OBJECT_ID('[backfill].[backfill_stage_1]') IS NOT NULL
    DROP TABLE [backfill].[backfill_stage_1]

SELECT c.name, t.name, c.max_length, c.precision, c.scale
    FROM sys.columns AS c
    JOIN sys.types AS t ON t.user_type_id = c.user_type_id
    WHERE c.object_id = OBJECT_ID('[mart].[fct_sales]')
    ORDER BY c.column_id

SELECT count(*)
    FROM [mart].[fct_sales]
    WHERE [sold_at] >= CAST(CAST('2026-05-12 00:00:00+00:00' AS datetimeoffset(6)) AT TIME ZONE 'UTC' AS datetime2(6))
    AND [sold_at] < CAST(CAST('2026-05-13 00:00:00+00:00' AS datetimeoffset(6)) AT TIME ZONE 'UTC' AS datetime2(6))

BEGIN TRANSACTION

SELECT SYSUTCDATETIME()

INSERT INTO [backfill].[load_audit] ([audit_id], [table_name], [partition_key], [window_start], [window_end], [dimensions], [outcome], [strategy], [lane], [rows_before], [rows_after], [checksum], [reason], [ticket], [launched_by], [run_id], [backfill_id], [code_version], [source_read_at], [started_at], [committed_at], [seconds], [cost], [detail])
    SELECT 'audit-id', 'mart.fct_sales', '2026-05-12', CAST(CAST('2026-05-12 00:00:00+00:00' AS datetimeoffset(6)) AT TIME ZONE 'UTC' AS datetime2(6)), CAST(CAST('2026-05-13 00:00:00+00:00' AS datetimeoffset(6)) AT TIME ZONE 'UTC' AS datetime2(6)), '{}', 'refused', 'recompute', 'live', 2, 2, '', NULL, NULL, NULL, 'second', NULL, NULL, CAST(CAST('2026-06-01 12:00:00+00:00' AS datetimeoffset(6)) AT TIME ZONE 'UTC' AS datetime2(6)), CAST(CAST('2026-06-01 12:00:00+00:00' AS datetimeoffset(6)) AT TIME ZONE 'UTC' AS datetime2(6)), CAST(CAST('2026-06-01 12:00:00+00:00' AS datetimeoffset(6)) AT TIME ZONE 'UTC' AS datetime2(6)), 0.1, NULL, '{"error": "SliceBusy", "why": "mart.fct_sales 2026-05-12 is being rewritten by another writer, so nothing was changed: two writers of a table cannot commit beside each other here, and the other was first. Let that run finish, then launch this partition again."}'

COMMIT TRANSACTION

INSERT INTO [mart].[fct_sales] ([sold_at], [id], [price], [note])
    SELECT [sold_at] AS [sold_at], [id] AS [id], [price] AS [price], [note] AS [note]
    FROM [backfill].[backfill_stage_1]

SELECT count(*), CAST(coalesce(sum(CAST(CAST(SUBSTRING(HASHBYTES('SHA2_256',
    coalesce(CAST(DATALENGTH(CONVERT(varchar(max), [sold_at], 126)) AS varchar(max)) + ':' + CONVERT(varchar(max), [sold_at], 126), '~') COLLATE Latin1_General_100_BIN2_UTF8 +
    coalesce(CAST(DATALENGTH(CAST([id] AS varchar(max))) AS varchar(max)) + ':' + CAST([id] AS varchar(max)), '~') COLLATE Latin1_General_100_BIN2_UTF8 +
    coalesce(CAST(DATALENGTH(CONVERT(varchar(max), [price], 3)) AS varchar(max)) + ':' + CONVERT(varchar(max), [price], 3), '~') COLLATE Latin1_General_100_BIN2_UTF8 +
    coalesce(CAST(DATALENGTH(CAST([note] AS varchar(max))) AS varchar(max)) + ':' + CAST([note] AS varchar(max)), '~') COLLATE Latin1_General_100_BIN2_UTF8), 1, 8) AS bigint) AS decimal(38, 0))), 0) AS varchar(40))
    FROM [mart].[fct_sales]
    WHERE [sold_at] >= CAST(CAST('2026-05-12 00:00:00+00:00' AS datetimeoffset(6)) AT TIME ZONE 'UTC' AS datetime2(6))
    AND [sold_at] < CAST(CAST('2026-05-13 00:00:00+00:00' AS datetimeoffset(6)) AT TIME ZONE 'UTC' AS datetime2(6))

SELECT SYSUTCDATETIME()

INSERT INTO [backfill].[load_audit] ([audit_id], [table_name], [partition_key], [window_start], [window_end], [dimensions], [outcome], [strategy], [lane], [rows_before], [rows_after], [checksum], [reason], [ticket], [launched_by], [run_id], [backfill_id], [code_version], [source_read_at], [started_at], [committed_at], [seconds], [cost], [detail])
    SELECT 'audit-id', 'mart.fct_sales', '2026-05-12', CAST(CAST('2026-05-12 00:00:00+00:00' AS datetimeoffset(6)) AT TIME ZONE 'UTC' AS datetime2(6)), CAST(CAST('2026-05-13 00:00:00+00:00' AS datetimeoffset(6)) AT TIME ZONE 'UTC' AS datetime2(6)), '{}', 'committed', 'recompute', 'live', 2, 2, '392288196327931801', NULL, NULL, NULL, 'a-run', NULL, NULL, CAST(CAST('2026-06-01 12:00:00+00:00' AS datetimeoffset(6)) AT TIME ZONE 'UTC' AS datetime2(6)), CAST(CAST('2026-06-01 12:00:00+00:00' AS datetimeoffset(6)) AT TIME ZONE 'UTC' AS datetime2(6)), CAST(CAST('2026-06-01 12:00:00+00:00' AS datetimeoffset(6)) AT TIME ZONE 'UTC' AS datetime2(6)), 0.1, NULL, NULL

COMMIT TRANSACTION

IF OBJECT_ID('[backfill].[backfill_stage_1]') IS NOT NULL
    DROP TABLE [backfill].[backfill_stage_1]

SELECT count(*)
    FROM [backfill].[load_audit]
    WHERE audit_id = 'audit-id'
