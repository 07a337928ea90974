-- readers are moved to the new table

CREATE SCHEMA IF NOT EXISTS `backfill`

CREATE TABLE IF NOT EXISTS `backfill`.`migration_moves` (`migration` STRING, `number` BIGINT, `state` STRING, `move_id` STRING, `at` TIMESTAMP, `launched_by` STRING, `reason` STRING, `run_id` STRING, `overridden` STRING, `detail` STRING) TBLPROPERTIES ('delta.isolationLevel' = 'Serializable')

SELECT lower(t.table_type), v.view_definition, ''
    FROM `catalog`.information_schema.tables AS t
    LEFT JOIN `catalog`.information_schema.views AS v ON v.table_schema = t.table_schema
    AND v.table_name = t.table_name
    WHERE t.table_schema = 'analytics'
    AND t.table_name = 'orders'

SELECT lower(t.table_type), v.view_definition, ''
    FROM `catalog`.information_schema.tables AS t
    LEFT JOIN `catalog`.information_schema.views AS v ON v.table_schema = t.table_schema
    AND v.table_name = t.table_name
    WHERE t.table_schema = 'analytics'
    AND t.table_name = 'orders'

SELECT lower(t.table_type), v.view_definition, ''
    FROM `catalog`.information_schema.tables AS t
    LEFT JOIN `catalog`.information_schema.views AS v ON v.table_schema = t.table_schema
    AND v.table_name = t.table_name
    WHERE t.table_schema = 'analytics'
    AND t.table_name = 'orders'

SELECT lower(t.table_type), v.view_definition, ''
    FROM `catalog`.information_schema.tables AS t
    LEFT JOIN `catalog`.information_schema.views AS v ON v.table_schema = t.table_schema
    AND v.table_name = t.table_name
    WHERE t.table_schema = 'analytics'
    AND t.table_name = 'orders'

-- the view of orders is held by `backfill`.`migration_moves`

INSERT INTO `backfill`.`migration_moves` (`migration`, `number`, `state`, `move_id`, `at`, `launched_by`, `reason`, `run_id`, `overridden`, `detail`)
    VALUES ('orders', 1, 'cutting_over', 'move-id', TIMESTAMP '2026-06-01 12:00:00+00:00', 'ann', '14 quiet days', 'run-1', NULL, NULL)

-- it is given back

-- the view of orders is held by `backfill`.`migration_moves`

-- enough of the lease is left

ALTER VIEW `analytics`.`orders`
    AS SELECT CAST(`order_id` AS BIGINT) AS `order_id`, CAST(`order_date` AS DATE) AS `order_date`, CAST(`amount` AS DECIMAL(10,2)) AS `amount`, CAST(`source` AS STRING) AS `source`
    FROM `analytics`.`orders_new`

INSERT INTO `backfill`.`migration_moves` (`migration`, `number`, `state`, `move_id`, `at`, `launched_by`, `reason`, `run_id`, `overridden`, `detail`)
    VALUES ('orders', 2, 'cut_over', 'move-id', TIMESTAMP '2026-06-01 12:00:00+00:00', 'ann', '14 quiet days', 'run-1', NULL, NULL)

-- it is given back

SELECT max(`order_date`)
    FROM (SELECT CAST(`order_id` AS BIGINT) AS `order_id`, CAST(`order_date` AS DATE) AS `order_date`, CAST(`amount` AS DECIMAL(10,2)) AS `amount`, CAST(`source` AS STRING) AS `source`
    FROM `analytics`.`orders_new`) AS meant

SELECT 1, count(*), CAST(coalesce(sum(CAST(xxhash64(coalesce(concat('=', CAST(`order_id` AS STRING)), ''), coalesce(concat('=', CAST(`order_date` AS STRING)), ''), coalesce(concat('=', CAST(`amount` AS STRING)), ''), coalesce(concat('=', CAST(`source` AS STRING)), '')) AS DECIMAL(38, 0))), 0) AS STRING)
    FROM `analytics`.`orders` AS seen
    WHERE `order_date` >= DATE '2026-05-10'
    AND `order_date` < DATE '2026-05-14'
    UNION ALL SELECT 2, count(*), CAST(coalesce(sum(CAST(xxhash64(coalesce(concat('=', CAST(`order_id` AS STRING)), ''), coalesce(concat('=', CAST(`order_date` AS STRING)), ''), coalesce(concat('=', CAST(`amount` AS STRING)), ''), coalesce(concat('=', CAST(`source` AS STRING)), '')) AS DECIMAL(38, 0))), 0) AS STRING)
    FROM (SELECT CAST(`order_id` AS BIGINT) AS `order_id`, CAST(`order_date` AS DATE) AS `order_date`, CAST(`amount` AS DECIMAL(10,2)) AS `amount`, CAST(`source` AS STRING) AS `source`
    FROM `analytics`.`orders_new`) AS meant
    WHERE `order_date` >= DATE '2026-05-10'
    AND `order_date` < DATE '2026-05-14'

SELECT lower(t.table_type), v.view_definition, ''
    FROM `catalog`.information_schema.tables AS t
    LEFT JOIN `catalog`.information_schema.views AS v ON v.table_schema = t.table_schema
    AND v.table_name = t.table_name
    WHERE t.table_schema = 'analytics'
    AND t.table_name = 'orders'


-- who sees which rows




-- the old table is dropped

SELECT lower(t.table_type), v.view_definition, ''
    FROM `catalog`.information_schema.tables AS t
    LEFT JOIN `catalog`.information_schema.views AS v ON v.table_schema = t.table_schema
    AND v.table_name = t.table_name
    WHERE t.table_schema = 'analytics'
    AND t.table_name = 'orders'

SELECT lower(t.table_type), v.view_definition, ''
    FROM `catalog`.information_schema.tables AS t
    LEFT JOIN `catalog`.information_schema.views AS v ON v.table_schema = t.table_schema
    AND v.table_name = t.table_name
    WHERE t.table_schema = 'analytics'
    AND t.table_name = 'orders'

SELECT table_schema, table_name, view_definition
    FROM `catalog`.information_schema.views
    WHERE view_definition IS NULL OR lower(view_definition) LIKE concat('%', lower('orders_legacy'), '%')

-- the view of orders is held by `backfill`.`migration_moves`

INSERT INTO `backfill`.`migration_moves` (`migration`, `number`, `state`, `move_id`, `at`, `launched_by`, `reason`, `run_id`, `overridden`, `detail`)
    VALUES ('orders', 3, 'retiring', 'move-id', TIMESTAMP '2026-06-01 12:00:00+00:00', 'ann', '14 quiet days', 'run-1', NULL, NULL)

-- it is given back

DROP TABLE IF EXISTS `analytics`.`orders_legacy`

-- the view of orders is held by `backfill`.`migration_moves`

SELECT lower(t.table_type), v.view_definition, ''
    FROM `catalog`.information_schema.tables AS t
    LEFT JOIN `catalog`.information_schema.views AS v ON v.table_schema = t.table_schema
    AND v.table_name = t.table_name
    WHERE t.table_schema = 'analytics'
    AND t.table_name = 'orders'

SELECT lower(t.table_type), v.view_definition, ''
    FROM `catalog`.information_schema.tables AS t
    LEFT JOIN `catalog`.information_schema.views AS v ON v.table_schema = t.table_schema
    AND v.table_name = t.table_name
    WHERE t.table_schema = 'analytics'
    AND t.table_name = 'orders_legacy'

INSERT INTO `backfill`.`migration_moves` (`migration`, `number`, `state`, `move_id`, `at`, `launched_by`, `reason`, `run_id`, `overridden`, `detail`)
    VALUES ('orders', 4, 'retired', 'move-id', TIMESTAMP '2026-06-01 12:00:00+00:00', 'ann', '14 quiet days', 'run-1', NULL, NULL)

-- it is given back

SELECT lower(t.table_type), v.view_definition, ''
    FROM `catalog`.information_schema.tables AS t
    LEFT JOIN `catalog`.information_schema.views AS v ON v.table_schema = t.table_schema
    AND v.table_name = t.table_name
    WHERE t.table_schema = 'analytics'
    AND t.table_name = 'orders'

SELECT lower(t.table_type), v.view_definition, ''
    FROM `catalog`.information_schema.tables AS t
    LEFT JOIN `catalog`.information_schema.views AS v ON v.table_schema = t.table_schema
    AND v.table_name = t.table_name
    WHERE t.table_schema = 'analytics'
    AND t.table_name = 'orders_legacy'
