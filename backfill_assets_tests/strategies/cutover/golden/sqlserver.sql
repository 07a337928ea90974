-- readers are moved to the new table

DECLARE @make nvarchar(4000) = N'CREATE SCHEMA ' + QUOTENAME(N'backfill'); IF SCHEMA_ID(N'backfill') IS NULL EXEC(@make)

IF OBJECT_ID(N'[backfill].[migration_moves]') IS NULL CREATE TABLE [backfill].[migration_moves] ([migration] nvarchar(4000) COLLATE Latin1_General_100_BIN2, [number] BIGINT, [state] nvarchar(4000) COLLATE Latin1_General_100_BIN2, [move_id] nvarchar(4000) COLLATE Latin1_General_100_BIN2, [at] datetimeoffset(6), [launched_by] nvarchar(4000) COLLATE Latin1_General_100_BIN2, [reason] nvarchar(max) COLLATE Latin1_General_100_BIN2, [run_id] nvarchar(4000) COLLATE Latin1_General_100_BIN2, [overridden] nvarchar(max) COLLATE Latin1_General_100_BIN2, [detail] nvarchar(max) COLLATE Latin1_General_100_BIN2)

SELECT CASE WHEN o.type = 'V'
    AND EXISTS (SELECT 1
    FROM sys.indexes AS i
    WHERE i.object_id = o.object_id) THEN 'indexed view' WHEN o.type = 'V' THEN 'view' WHEN o.type = 'SN' THEN 'synonym' ELSE 'table' END, m.definition, CASE WHEN m.is_schema_bound = 1 THEN ' WITH SCHEMABINDING' ELSE '' END
    FROM sys.objects AS o
    LEFT JOIN sys.sql_modules AS m ON m.object_id = o.object_id
    WHERE o.object_id = OBJECT_ID(N'[analytics].[orders]')

SELECT CASE WHEN o.type = 'V'
    AND EXISTS (SELECT 1
    FROM sys.indexes AS i
    WHERE i.object_id = o.object_id) THEN 'indexed view' WHEN o.type = 'V' THEN 'view' WHEN o.type = 'SN' THEN 'synonym' ELSE 'table' END, m.definition, CASE WHEN m.is_schema_bound = 1 THEN ' WITH SCHEMABINDING' ELSE '' END
    FROM sys.objects AS o
    LEFT JOIN sys.sql_modules AS m ON m.object_id = o.object_id
    WHERE o.object_id = OBJECT_ID(N'[analytics].[orders]')

SELECT CASE WHEN o.type = 'V'
    AND EXISTS (SELECT 1
    FROM sys.indexes AS i
    WHERE i.object_id = o.object_id) THEN 'indexed view' WHEN o.type = 'V' THEN 'view' WHEN o.type = 'SN' THEN 'synonym' ELSE 'table' END, m.definition, CASE WHEN m.is_schema_bound = 1 THEN ' WITH SCHEMABINDING' ELSE '' END
    FROM sys.objects AS o
    LEFT JOIN sys.sql_modules AS m ON m.object_id = o.object_id
    WHERE o.object_id = OBJECT_ID(N'[analytics].[orders]')

SELECT CASE WHEN o.type = 'V'
    AND EXISTS (SELECT 1
    FROM sys.indexes AS i
    WHERE i.object_id = o.object_id) THEN 'indexed view' WHEN o.type = 'V' THEN 'view' WHEN o.type = 'SN' THEN 'synonym' ELSE 'table' END, m.definition, CASE WHEN m.is_schema_bound = 1 THEN ' WITH SCHEMABINDING' ELSE '' END
    FROM sys.objects AS o
    LEFT JOIN sys.sql_modules AS m ON m.object_id = o.object_id
    WHERE o.object_id = OBJECT_ID(N'[analytics].[orders]')

-- a transaction begins

-- the view of orders is claimed by [backfill].[migration_moves]

INSERT INTO [backfill].[migration_moves] ([migration], [number], [state], [move_id], [at], [launched_by], [reason], [run_id], [overridden], [detail]) SELECT N'orders', 1, N'cutting_over', N'move-id', CAST('2026-06-01 12:00:00+00:00' AS datetimeoffset(6)), N'ann', N'14 quiet days', N'run-1', NULL, NULL

-- it is committed

-- a transaction begins

-- the view of orders is claimed by [backfill].[migration_moves]

ALTER VIEW [analytics].[orders] WITH SCHEMABINDING
    AS SELECT CAST([order_id] AS bigint) AS [order_id], CAST([order_date] AS date) AS [order_date], CAST([amount] AS decimal(10,2)) AS [amount], CAST([source] AS nvarchar(10)) AS [source]
    FROM [analytics].[orders_new]

INSERT INTO [backfill].[migration_moves] ([migration], [number], [state], [move_id], [at], [launched_by], [reason], [run_id], [overridden], [detail]) SELECT N'orders', 2, N'cut_over', N'move-id', CAST('2026-06-01 12:00:00+00:00' AS datetimeoffset(6)), N'ann', N'14 quiet days', N'run-1', NULL, NULL

-- it is committed

SELECT max([order_date])
    FROM (SELECT CAST([order_id] AS bigint) AS [order_id], CAST([order_date] AS date) AS [order_date], CAST([amount] AS decimal(10,2)) AS [amount], CAST([source] AS nvarchar(10)) AS [source]
    FROM [analytics].[orders_new]) AS meant

SELECT 1, count(*), CAST(coalesce(sum(CAST(CAST(SUBSTRING(HASHBYTES('SHA2_256', coalesce(CAST(DATALENGTH(CAST([order_id] AS nvarchar(max))) AS nvarchar(max)) + N':' + CAST([order_id] AS nvarchar(max)), N'~') COLLATE Latin1_General_100_BIN2 + coalesce(CAST(DATALENGTH(CONVERT(nvarchar(max), [order_date], 23)) AS nvarchar(max)) + N':' + CONVERT(nvarchar(max), [order_date], 23), N'~') COLLATE Latin1_General_100_BIN2 + coalesce(CAST(DATALENGTH(CAST([amount] AS nvarchar(max))) AS nvarchar(max)) + N':' + CAST([amount] AS nvarchar(max)), N'~') COLLATE Latin1_General_100_BIN2 + coalesce(CAST(DATALENGTH(CAST([source] AS nvarchar(max))) AS nvarchar(max)) + N':' + CAST([source] AS nvarchar(max)), N'~') COLLATE Latin1_General_100_BIN2), 1, 8) AS bigint) AS decimal(38, 0))), 0) AS varchar(40))
    FROM [analytics].[orders] AS seen
    WHERE [order_date] >= CAST('2026-05-10' AS date)
    AND [order_date] < CAST('2026-05-14' AS date)
    UNION ALL SELECT 2, count(*), CAST(coalesce(sum(CAST(CAST(SUBSTRING(HASHBYTES('SHA2_256', coalesce(CAST(DATALENGTH(CAST([order_id] AS nvarchar(max))) AS nvarchar(max)) + N':' + CAST([order_id] AS nvarchar(max)), N'~') COLLATE Latin1_General_100_BIN2 + coalesce(CAST(DATALENGTH(CONVERT(nvarchar(max), [order_date], 23)) AS nvarchar(max)) + N':' + CONVERT(nvarchar(max), [order_date], 23), N'~') COLLATE Latin1_General_100_BIN2 + coalesce(CAST(DATALENGTH(CAST([amount] AS nvarchar(max))) AS nvarchar(max)) + N':' + CAST([amount] AS nvarchar(max)), N'~') COLLATE Latin1_General_100_BIN2 + coalesce(CAST(DATALENGTH(CAST([source] AS nvarchar(max))) AS nvarchar(max)) + N':' + CAST([source] AS nvarchar(max)), N'~') COLLATE Latin1_General_100_BIN2), 1, 8) AS bigint) AS decimal(38, 0))), 0) AS varchar(40))
    FROM (SELECT CAST([order_id] AS bigint) AS [order_id], CAST([order_date] AS date) AS [order_date], CAST([amount] AS decimal(10,2)) AS [amount], CAST([source] AS nvarchar(10)) AS [source]
    FROM [analytics].[orders_new]) AS meant
    WHERE [order_date] >= CAST('2026-05-10' AS date)
    AND [order_date] < CAST('2026-05-14' AS date)

SELECT CASE WHEN o.type = 'V'
    AND EXISTS (SELECT 1
    FROM sys.indexes AS i
    WHERE i.object_id = o.object_id) THEN 'indexed view' WHEN o.type = 'V' THEN 'view' WHEN o.type = 'SN' THEN 'synonym' ELSE 'table' END, m.definition, CASE WHEN m.is_schema_bound = 1 THEN ' WITH SCHEMABINDING' ELSE '' END
    FROM sys.objects AS o
    LEFT JOIN sys.sql_modules AS m ON m.object_id = o.object_id
    WHERE o.object_id = OBJECT_ID(N'[analytics].[orders]')


-- who sees which rows

SELECT f.predicate_type_desc, f.operation_desc, f.predicate_definition, p.is_enabled
    FROM sys.security_predicates AS f
    JOIN sys.security_policies AS p ON p.object_id = f.object_id
    WHERE f.target_object_id = OBJECT_ID(N'[analytics].[orders_legacy]')

SELECT f.predicate_type_desc, f.operation_desc, f.predicate_definition, p.is_enabled
    FROM sys.security_predicates AS f
    JOIN sys.security_policies AS p ON p.object_id = f.object_id
    WHERE f.target_object_id = OBJECT_ID(N'[analytics].[orders_new]')


-- the old table is dropped

SELECT CASE WHEN o.type = 'V'
    AND EXISTS (SELECT 1
    FROM sys.indexes AS i
    WHERE i.object_id = o.object_id) THEN 'indexed view' WHEN o.type = 'V' THEN 'view' WHEN o.type = 'SN' THEN 'synonym' ELSE 'table' END, m.definition, CASE WHEN m.is_schema_bound = 1 THEN ' WITH SCHEMABINDING' ELSE '' END
    FROM sys.objects AS o
    LEFT JOIN sys.sql_modules AS m ON m.object_id = o.object_id
    WHERE o.object_id = OBJECT_ID(N'[analytics].[orders]')

SELECT CASE WHEN o.type = 'V'
    AND EXISTS (SELECT 1
    FROM sys.indexes AS i
    WHERE i.object_id = o.object_id) THEN 'indexed view' WHEN o.type = 'V' THEN 'view' WHEN o.type = 'SN' THEN 'synonym' ELSE 'table' END, m.definition, CASE WHEN m.is_schema_bound = 1 THEN ' WITH SCHEMABINDING' ELSE '' END
    FROM sys.objects AS o
    LEFT JOIN sys.sql_modules AS m ON m.object_id = o.object_id
    WHERE o.object_id = OBJECT_ID(N'[analytics].[orders]')

SELECT s.name, o.name, m.definition
    FROM sys.objects AS o
    JOIN sys.schemas AS s ON s.schema_id = o.schema_id
    JOIN sys.sql_modules AS m ON m.object_id = o.object_id
    WHERE o.type = 'V'
    AND (m.definition IS NULL OR lower(m.definition) LIKE '%' + lower(N'orders_legacy') + '%')

-- a transaction begins

-- the view of orders is claimed by [backfill].[migration_moves]

INSERT INTO [backfill].[migration_moves] ([migration], [number], [state], [move_id], [at], [launched_by], [reason], [run_id], [overridden], [detail]) SELECT N'orders', 3, N'retiring', N'move-id', CAST('2026-06-01 12:00:00+00:00' AS datetimeoffset(6)), N'ann', N'14 quiet days', N'run-1', NULL, NULL

IF OBJECT_ID(N'[analytics].[orders_legacy]') IS NOT NULL DROP TABLE [analytics].[orders_legacy]

INSERT INTO [backfill].[migration_moves] ([migration], [number], [state], [move_id], [at], [launched_by], [reason], [run_id], [overridden], [detail]) SELECT N'orders', 4, N'retired', N'move-id', CAST('2026-06-01 12:00:00+00:00' AS datetimeoffset(6)), N'ann', N'14 quiet days', N'run-1', NULL, NULL

-- it is committed

SELECT CASE WHEN o.type = 'V'
    AND EXISTS (SELECT 1
    FROM sys.indexes AS i
    WHERE i.object_id = o.object_id) THEN 'indexed view' WHEN o.type = 'V' THEN 'view' WHEN o.type = 'SN' THEN 'synonym' ELSE 'table' END, m.definition, CASE WHEN m.is_schema_bound = 1 THEN ' WITH SCHEMABINDING' ELSE '' END
    FROM sys.objects AS o
    LEFT JOIN sys.sql_modules AS m ON m.object_id = o.object_id
    WHERE o.object_id = OBJECT_ID(N'[analytics].[orders]')

SELECT CASE WHEN o.type = 'V'
    AND EXISTS (SELECT 1
    FROM sys.indexes AS i
    WHERE i.object_id = o.object_id) THEN 'indexed view' WHEN o.type = 'V' THEN 'view' WHEN o.type = 'SN' THEN 'synonym' ELSE 'table' END, m.definition, CASE WHEN m.is_schema_bound = 1 THEN ' WITH SCHEMABINDING' ELSE '' END
    FROM sys.objects AS o
    LEFT JOIN sys.sql_modules AS m ON m.object_id = o.object_id
    WHERE o.object_id = OBJECT_ID(N'[analytics].[orders_legacy]')
