-- readers are moved to the new table

DECLARE @make varchar(8000) = 'CREATE SCHEMA ' + QUOTENAME('backfill'); IF SCHEMA_ID('backfill') IS NULL EXEC(@make)

IF OBJECT_ID('[backfill].[migration_moves]') IS NULL CREATE TABLE [backfill].[migration_moves] ([migration] varchar(8000) COLLATE Latin1_General_100_BIN2_UTF8, [number] BIGINT, [state] varchar(8000) COLLATE Latin1_General_100_BIN2_UTF8, [move_id] varchar(8000) COLLATE Latin1_General_100_BIN2_UTF8, [at] datetime2(6), [launched_by] varchar(8000) COLLATE Latin1_General_100_BIN2_UTF8, [reason] varchar(max) COLLATE Latin1_General_100_BIN2_UTF8, [run_id] varchar(8000) COLLATE Latin1_General_100_BIN2_UTF8, [overridden] varchar(max) COLLATE Latin1_General_100_BIN2_UTF8, [detail] varchar(max) COLLATE Latin1_General_100_BIN2_UTF8)

SELECT CASE WHEN o.type = 'V'
    AND EXISTS (SELECT 1
    FROM sys.indexes AS i
    WHERE i.object_id = o.object_id) THEN 'indexed view' WHEN o.type = 'V' THEN 'view' WHEN o.type = 'SN' THEN 'synonym' ELSE 'table' END, m.definition, CASE WHEN m.is_schema_bound = 1 THEN ' WITH SCHEMABINDING' ELSE '' END
    FROM sys.objects AS o
    LEFT JOIN sys.sql_modules AS m ON m.object_id = o.object_id
    WHERE o.object_id = OBJECT_ID('[analytics].[orders]')

SELECT CASE WHEN o.type = 'V'
    AND EXISTS (SELECT 1
    FROM sys.indexes AS i
    WHERE i.object_id = o.object_id) THEN 'indexed view' WHEN o.type = 'V' THEN 'view' WHEN o.type = 'SN' THEN 'synonym' ELSE 'table' END, m.definition, CASE WHEN m.is_schema_bound = 1 THEN ' WITH SCHEMABINDING' ELSE '' END
    FROM sys.objects AS o
    LEFT JOIN sys.sql_modules AS m ON m.object_id = o.object_id
    WHERE o.object_id = OBJECT_ID('[analytics].[orders]')

SELECT CASE WHEN o.type = 'V'
    AND EXISTS (SELECT 1
    FROM sys.indexes AS i
    WHERE i.object_id = o.object_id) THEN 'indexed view' WHEN o.type = 'V' THEN 'view' WHEN o.type = 'SN' THEN 'synonym' ELSE 'table' END, m.definition, CASE WHEN m.is_schema_bound = 1 THEN ' WITH SCHEMABINDING' ELSE '' END
    FROM sys.objects AS o
    LEFT JOIN sys.sql_modules AS m ON m.object_id = o.object_id
    WHERE o.object_id = OBJECT_ID('[analytics].[orders]')

SELECT CASE WHEN o.type = 'V'
    AND EXISTS (SELECT 1
    FROM sys.indexes AS i
    WHERE i.object_id = o.object_id) THEN 'indexed view' WHEN o.type = 'V' THEN 'view' WHEN o.type = 'SN' THEN 'synonym' ELSE 'table' END, m.definition, CASE WHEN m.is_schema_bound = 1 THEN ' WITH SCHEMABINDING' ELSE '' END
    FROM sys.objects AS o
    LEFT JOIN sys.sql_modules AS m ON m.object_id = o.object_id
    WHERE o.object_id = OBJECT_ID('[analytics].[orders]')

-- a transaction begins

-- the view of orders is claimed by [backfill].[migration_moves]

INSERT INTO [backfill].[migration_moves] ([migration], [number], [state], [move_id], [at], [launched_by], [reason], [run_id], [overridden], [detail]) SELECT 'orders', 1, 'cutting_over', 'move-id', CAST(CAST('2026-06-01 12:00:00+00:00' AS datetimeoffset(6)) AT TIME ZONE 'UTC' AS datetime2(6)), 'ann', '14 quiet days', 'run-1', NULL, NULL

-- it is committed

-- a transaction begins

-- the view of orders is claimed by [backfill].[migration_moves]

-- it is committed

ALTER VIEW [analytics].[orders]
    AS SELECT CAST([order_id] AS bigint) AS [order_id], CAST([order_date] AS date) AS [order_date], CAST([amount] AS decimal(10,2)) AS [amount], CAST([source] AS varchar(10)) AS [source]
    FROM [analytics].[orders_new]

-- a transaction begins

-- the view of orders is claimed by [backfill].[migration_moves]

SELECT CASE WHEN o.type = 'V'
    AND EXISTS (SELECT 1
    FROM sys.indexes AS i
    WHERE i.object_id = o.object_id) THEN 'indexed view' WHEN o.type = 'V' THEN 'view' WHEN o.type = 'SN' THEN 'synonym' ELSE 'table' END, m.definition, CASE WHEN m.is_schema_bound = 1 THEN ' WITH SCHEMABINDING' ELSE '' END
    FROM sys.objects AS o
    LEFT JOIN sys.sql_modules AS m ON m.object_id = o.object_id
    WHERE o.object_id = OBJECT_ID('[analytics].[orders]')

INSERT INTO [backfill].[migration_moves] ([migration], [number], [state], [move_id], [at], [launched_by], [reason], [run_id], [overridden], [detail]) SELECT 'orders', 2, 'cut_over', 'move-id', CAST(CAST('2026-06-01 12:00:00+00:00' AS datetimeoffset(6)) AT TIME ZONE 'UTC' AS datetime2(6)), 'ann', '14 quiet days', 'run-1', NULL, NULL

-- it is committed

SELECT max([order_date])
    FROM (SELECT CAST([order_id] AS bigint) AS [order_id], CAST([order_date] AS date) AS [order_date], CAST([amount] AS decimal(10,2)) AS [amount], CAST([source] AS varchar(10)) AS [source]
    FROM [analytics].[orders_new]) AS meant

SELECT 1, count(*), CAST(coalesce(sum(CAST(CAST(SUBSTRING(HASHBYTES('SHA2_256', coalesce(CAST(DATALENGTH(CAST([order_id] AS varchar(max))) AS varchar(max)) + ':' + CAST([order_id] AS varchar(max)), '~') COLLATE Latin1_General_100_BIN2_UTF8 + coalesce(CAST(DATALENGTH(CONVERT(varchar(max), [order_date], 23)) AS varchar(max)) + ':' + CONVERT(varchar(max), [order_date], 23), '~') COLLATE Latin1_General_100_BIN2_UTF8 + coalesce(CAST(DATALENGTH(CAST([amount] AS varchar(max))) AS varchar(max)) + ':' + CAST([amount] AS varchar(max)), '~') COLLATE Latin1_General_100_BIN2_UTF8 + coalesce(CAST(DATALENGTH(CAST([source] AS varchar(max))) AS varchar(max)) + ':' + CAST([source] AS varchar(max)), '~') COLLATE Latin1_General_100_BIN2_UTF8), 1, 8) AS bigint) AS decimal(38, 0))), 0) AS varchar(40))
    FROM [analytics].[orders] AS seen
    WHERE [order_date] >= CAST('2026-05-10' AS date)
    AND [order_date] < CAST('2026-05-14' AS date)
    UNION ALL SELECT 2, count(*), CAST(coalesce(sum(CAST(CAST(SUBSTRING(HASHBYTES('SHA2_256', coalesce(CAST(DATALENGTH(CAST([order_id] AS varchar(max))) AS varchar(max)) + ':' + CAST([order_id] AS varchar(max)), '~') COLLATE Latin1_General_100_BIN2_UTF8 + coalesce(CAST(DATALENGTH(CONVERT(varchar(max), [order_date], 23)) AS varchar(max)) + ':' + CONVERT(varchar(max), [order_date], 23), '~') COLLATE Latin1_General_100_BIN2_UTF8 + coalesce(CAST(DATALENGTH(CAST([amount] AS varchar(max))) AS varchar(max)) + ':' + CAST([amount] AS varchar(max)), '~') COLLATE Latin1_General_100_BIN2_UTF8 + coalesce(CAST(DATALENGTH(CAST([source] AS varchar(max))) AS varchar(max)) + ':' + CAST([source] AS varchar(max)), '~') COLLATE Latin1_General_100_BIN2_UTF8), 1, 8) AS bigint) AS decimal(38, 0))), 0) AS varchar(40))
    FROM (SELECT CAST([order_id] AS bigint) AS [order_id], CAST([order_date] AS date) AS [order_date], CAST([amount] AS decimal(10,2)) AS [amount], CAST([source] AS varchar(10)) AS [source]
    FROM [analytics].[orders_new]) AS meant
    WHERE [order_date] >= CAST('2026-05-10' AS date)
    AND [order_date] < CAST('2026-05-14' AS date)

SELECT CASE WHEN o.type = 'V'
    AND EXISTS (SELECT 1
    FROM sys.indexes AS i
    WHERE i.object_id = o.object_id) THEN 'indexed view' WHEN o.type = 'V' THEN 'view' WHEN o.type = 'SN' THEN 'synonym' ELSE 'table' END, m.definition, CASE WHEN m.is_schema_bound = 1 THEN ' WITH SCHEMABINDING' ELSE '' END
    FROM sys.objects AS o
    LEFT JOIN sys.sql_modules AS m ON m.object_id = o.object_id
    WHERE o.object_id = OBJECT_ID('[analytics].[orders]')


-- who sees which rows

SELECT f.predicate_type_desc, f.operation_desc, f.predicate_definition, p.is_enabled
    FROM sys.security_predicates AS f
    JOIN sys.security_policies AS p ON p.object_id = f.object_id
    WHERE f.target_object_id = OBJECT_ID('[analytics].[orders_legacy]')

SELECT f.predicate_type_desc, f.operation_desc, f.predicate_definition, p.is_enabled
    FROM sys.security_predicates AS f
    JOIN sys.security_policies AS p ON p.object_id = f.object_id
    WHERE f.target_object_id = OBJECT_ID('[analytics].[orders_new]')


-- the old table is dropped

SELECT CASE WHEN o.type = 'V'
    AND EXISTS (SELECT 1
    FROM sys.indexes AS i
    WHERE i.object_id = o.object_id) THEN 'indexed view' WHEN o.type = 'V' THEN 'view' WHEN o.type = 'SN' THEN 'synonym' ELSE 'table' END, m.definition, CASE WHEN m.is_schema_bound = 1 THEN ' WITH SCHEMABINDING' ELSE '' END
    FROM sys.objects AS o
    LEFT JOIN sys.sql_modules AS m ON m.object_id = o.object_id
    WHERE o.object_id = OBJECT_ID('[analytics].[orders]')

SELECT CASE WHEN o.type = 'V'
    AND EXISTS (SELECT 1
    FROM sys.indexes AS i
    WHERE i.object_id = o.object_id) THEN 'indexed view' WHEN o.type = 'V' THEN 'view' WHEN o.type = 'SN' THEN 'synonym' ELSE 'table' END, m.definition, CASE WHEN m.is_schema_bound = 1 THEN ' WITH SCHEMABINDING' ELSE '' END
    FROM sys.objects AS o
    LEFT JOIN sys.sql_modules AS m ON m.object_id = o.object_id
    WHERE o.object_id = OBJECT_ID('[analytics].[orders]')

SELECT s.name, o.name, m.definition
    FROM sys.objects AS o
    JOIN sys.schemas AS s ON s.schema_id = o.schema_id
    JOIN sys.sql_modules AS m ON m.object_id = o.object_id
    WHERE o.type = 'V'
    AND (m.definition IS NULL OR lower(m.definition) LIKE '%' + lower('orders_legacy') + '%')

-- a transaction begins

-- the view of orders is claimed by [backfill].[migration_moves]

INSERT INTO [backfill].[migration_moves] ([migration], [number], [state], [move_id], [at], [launched_by], [reason], [run_id], [overridden], [detail]) SELECT 'orders', 3, 'retiring', 'move-id', CAST(CAST('2026-06-01 12:00:00+00:00' AS datetimeoffset(6)) AT TIME ZONE 'UTC' AS datetime2(6)), 'ann', '14 quiet days', 'run-1', NULL, NULL

-- it is committed

IF OBJECT_ID('[analytics].[orders_legacy]') IS NOT NULL DROP TABLE [analytics].[orders_legacy]

-- a transaction begins

-- the view of orders is claimed by [backfill].[migration_moves]

SELECT CASE WHEN o.type = 'V'
    AND EXISTS (SELECT 1
    FROM sys.indexes AS i
    WHERE i.object_id = o.object_id) THEN 'indexed view' WHEN o.type = 'V' THEN 'view' WHEN o.type = 'SN' THEN 'synonym' ELSE 'table' END, m.definition, CASE WHEN m.is_schema_bound = 1 THEN ' WITH SCHEMABINDING' ELSE '' END
    FROM sys.objects AS o
    LEFT JOIN sys.sql_modules AS m ON m.object_id = o.object_id
    WHERE o.object_id = OBJECT_ID('[analytics].[orders]')

SELECT CASE WHEN o.type = 'V'
    AND EXISTS (SELECT 1
    FROM sys.indexes AS i
    WHERE i.object_id = o.object_id) THEN 'indexed view' WHEN o.type = 'V' THEN 'view' WHEN o.type = 'SN' THEN 'synonym' ELSE 'table' END, m.definition, CASE WHEN m.is_schema_bound = 1 THEN ' WITH SCHEMABINDING' ELSE '' END
    FROM sys.objects AS o
    LEFT JOIN sys.sql_modules AS m ON m.object_id = o.object_id
    WHERE o.object_id = OBJECT_ID('[analytics].[orders_legacy]')

INSERT INTO [backfill].[migration_moves] ([migration], [number], [state], [move_id], [at], [launched_by], [reason], [run_id], [overridden], [detail]) SELECT 'orders', 4, 'retired', 'move-id', CAST(CAST('2026-06-01 12:00:00+00:00' AS datetimeoffset(6)) AT TIME ZONE 'UTC' AS datetime2(6)), 'ann', '14 quiet days', 'run-1', NULL, NULL

-- it is committed

SELECT CASE WHEN o.type = 'V'
    AND EXISTS (SELECT 1
    FROM sys.indexes AS i
    WHERE i.object_id = o.object_id) THEN 'indexed view' WHEN o.type = 'V' THEN 'view' WHEN o.type = 'SN' THEN 'synonym' ELSE 'table' END, m.definition, CASE WHEN m.is_schema_bound = 1 THEN ' WITH SCHEMABINDING' ELSE '' END
    FROM sys.objects AS o
    LEFT JOIN sys.sql_modules AS m ON m.object_id = o.object_id
    WHERE o.object_id = OBJECT_ID('[analytics].[orders]')

SELECT CASE WHEN o.type = 'V'
    AND EXISTS (SELECT 1
    FROM sys.indexes AS i
    WHERE i.object_id = o.object_id) THEN 'indexed view' WHEN o.type = 'V' THEN 'view' WHEN o.type = 'SN' THEN 'synonym' ELSE 'table' END, m.definition, CASE WHEN m.is_schema_bound = 1 THEN ' WITH SCHEMABINDING' ELSE '' END
    FROM sys.objects AS o
    LEFT JOIN sys.sql_modules AS m ON m.object_id = o.object_id
    WHERE o.object_id = OBJECT_ID('[analytics].[orders_legacy]')
