-- readers are moved to the new table

CREATE SCHEMA IF NOT EXISTS `backfill`

CREATE TABLE IF NOT EXISTS `backfill`.`migration_moves` (`migration` TEXT, `number` INT64, `state` TEXT, `move_id` TEXT, `at` TIMESTAMP, `launched_by` TEXT, `reason` TEXT, `run_id` TEXT, `overridden` TEXT, `detail` TEXT)

SELECT CASE t.table_type WHEN 'VIEW' THEN 'view' ELSE lower(t.table_type) END, v.view_definition, ''
    FROM `project`.`analytics`.INFORMATION_SCHEMA.TABLES AS t
    LEFT JOIN `project`.`analytics`.INFORMATION_SCHEMA.VIEWS AS v ON v.table_name = t.table_name
    WHERE t.table_name = 'orders'

SELECT CASE t.table_type WHEN 'VIEW' THEN 'view' ELSE lower(t.table_type) END, v.view_definition, ''
    FROM `project`.`analytics`.INFORMATION_SCHEMA.TABLES AS t
    LEFT JOIN `project`.`analytics`.INFORMATION_SCHEMA.VIEWS AS v ON v.table_name = t.table_name
    WHERE t.table_name = 'orders'

SELECT CASE t.table_type WHEN 'VIEW' THEN 'view' ELSE lower(t.table_type) END, v.view_definition, ''
    FROM `project`.`analytics`.INFORMATION_SCHEMA.TABLES AS t
    LEFT JOIN `project`.`analytics`.INFORMATION_SCHEMA.VIEWS AS v ON v.table_name = t.table_name
    WHERE t.table_name = 'orders'

SELECT CASE t.table_type WHEN 'VIEW' THEN 'view' ELSE lower(t.table_type) END, v.view_definition, ''
    FROM `project`.`analytics`.INFORMATION_SCHEMA.TABLES AS t
    LEFT JOIN `project`.`analytics`.INFORMATION_SCHEMA.VIEWS AS v ON v.table_name = t.table_name
    WHERE t.table_name = 'orders'

-- a transaction begins

-- the view of orders is claimed by `backfill`.`migration_moves`

INSERT INTO `backfill`.`migration_moves` (`migration`, `number`, `state`, `move_id`, `at`, `launched_by`, `reason`, `run_id`, `overridden`, `detail`)
    VALUES ('orders', 1, 'cutting_over', 'move-id', TIMESTAMP '2026-06-01 12:00:00+00:00', 'ann', '14 quiet days', 'run-1', NULL, NULL)

-- it is committed

-- a transaction begins

-- the view of orders is claimed by `backfill`.`migration_moves`

-- it is committed

CREATE OR REPLACE VIEW `analytics`.`orders`
    AS SELECT CAST(`order_id` AS INT64) AS `order_id`, CAST(`order_date` AS DATE) AS `order_date`, CAST(`amount` AS NUMERIC) AS `amount`, CAST(`source` AS STRING) AS `source`
    FROM `analytics`.`orders_new`

-- a transaction begins

-- the view of orders is claimed by `backfill`.`migration_moves`

SELECT CASE t.table_type WHEN 'VIEW' THEN 'view' ELSE lower(t.table_type) END, v.view_definition, ''
    FROM `project`.`analytics`.INFORMATION_SCHEMA.TABLES AS t
    LEFT JOIN `project`.`analytics`.INFORMATION_SCHEMA.VIEWS AS v ON v.table_name = t.table_name
    WHERE t.table_name = 'orders'

INSERT INTO `backfill`.`migration_moves` (`migration`, `number`, `state`, `move_id`, `at`, `launched_by`, `reason`, `run_id`, `overridden`, `detail`)
    VALUES ('orders', 2, 'cut_over', 'move-id', TIMESTAMP '2026-06-01 12:00:00+00:00', 'ann', '14 quiet days', 'run-1', NULL, NULL)

-- it is committed

SELECT max(`order_date`)
    FROM (SELECT CAST(`order_id` AS INT64) AS `order_id`, CAST(`order_date` AS DATE) AS `order_date`, CAST(`amount` AS NUMERIC) AS `amount`, CAST(`source` AS STRING) AS `source`
    FROM `analytics`.`orders_new`) AS meant

SELECT 1, count(*), CAST(coalesce(sum(CAST(FARM_FINGERPRINT(CONCAT(coalesce(TO_JSON_STRING(`order_id`), 'null'), ',', coalesce(TO_JSON_STRING(`order_date`), 'null'), ',', coalesce(TO_JSON_STRING(SAFE_CAST(`amount` AS NUMERIC(38,9))), 'null'), ',', coalesce(TO_JSON_STRING(`source`), 'null'))) AS BIGNUMERIC)), 0) AS STRING)
    FROM `analytics`.`orders` AS seen
    WHERE `order_date` >= DATE '2026-05-10'
    AND `order_date` < DATE '2026-05-14'
    UNION ALL SELECT 2, count(*), CAST(coalesce(sum(CAST(FARM_FINGERPRINT(CONCAT(coalesce(TO_JSON_STRING(`order_id`), 'null'), ',', coalesce(TO_JSON_STRING(`order_date`), 'null'), ',', coalesce(TO_JSON_STRING(SAFE_CAST(`amount` AS NUMERIC(38,9))), 'null'), ',', coalesce(TO_JSON_STRING(`source`), 'null'))) AS BIGNUMERIC)), 0) AS STRING)
    FROM (SELECT CAST(`order_id` AS INT64) AS `order_id`, CAST(`order_date` AS DATE) AS `order_date`, CAST(`amount` AS NUMERIC) AS `amount`, CAST(`source` AS STRING) AS `source`
    FROM `analytics`.`orders_new`) AS meant
    WHERE `order_date` >= DATE '2026-05-10'
    AND `order_date` < DATE '2026-05-14'

SELECT CASE t.table_type WHEN 'VIEW' THEN 'view' ELSE lower(t.table_type) END, v.view_definition, ''
    FROM `project`.`analytics`.INFORMATION_SCHEMA.TABLES AS t
    LEFT JOIN `project`.`analytics`.INFORMATION_SCHEMA.VIEWS AS v ON v.table_name = t.table_name
    WHERE t.table_name = 'orders'


-- who sees which rows




-- the old table is dropped

SELECT CASE t.table_type WHEN 'VIEW' THEN 'view' ELSE lower(t.table_type) END, v.view_definition, ''
    FROM `project`.`analytics`.INFORMATION_SCHEMA.TABLES AS t
    LEFT JOIN `project`.`analytics`.INFORMATION_SCHEMA.VIEWS AS v ON v.table_name = t.table_name
    WHERE t.table_name = 'orders'

SELECT CASE t.table_type WHEN 'VIEW' THEN 'view' ELSE lower(t.table_type) END, v.view_definition, ''
    FROM `project`.`analytics`.INFORMATION_SCHEMA.TABLES AS t
    LEFT JOIN `project`.`analytics`.INFORMATION_SCHEMA.VIEWS AS v ON v.table_name = t.table_name
    WHERE t.table_name = 'orders'

SELECT table_schema, table_name, view_definition
    FROM `project`.`analytics`.INFORMATION_SCHEMA.VIEWS
    WHERE view_definition IS NULL OR lower(view_definition) LIKE concat('%', lower('orders_legacy'), '%')

-- a transaction begins

-- the view of orders is claimed by `backfill`.`migration_moves`

INSERT INTO `backfill`.`migration_moves` (`migration`, `number`, `state`, `move_id`, `at`, `launched_by`, `reason`, `run_id`, `overridden`, `detail`)
    VALUES ('orders', 3, 'retiring', 'move-id', TIMESTAMP '2026-06-01 12:00:00+00:00', 'ann', '14 quiet days', 'run-1', NULL, NULL)

-- it is committed

DROP TABLE IF EXISTS `analytics`.`orders_legacy`

-- a transaction begins

-- the view of orders is claimed by `backfill`.`migration_moves`

SELECT CASE t.table_type WHEN 'VIEW' THEN 'view' ELSE lower(t.table_type) END, v.view_definition, ''
    FROM `project`.`analytics`.INFORMATION_SCHEMA.TABLES AS t
    LEFT JOIN `project`.`analytics`.INFORMATION_SCHEMA.VIEWS AS v ON v.table_name = t.table_name
    WHERE t.table_name = 'orders'

SELECT CASE t.table_type WHEN 'VIEW' THEN 'view' ELSE lower(t.table_type) END, v.view_definition, ''
    FROM `project`.`analytics`.INFORMATION_SCHEMA.TABLES AS t
    LEFT JOIN `project`.`analytics`.INFORMATION_SCHEMA.VIEWS AS v ON v.table_name = t.table_name
    WHERE t.table_name = 'orders_legacy'

INSERT INTO `backfill`.`migration_moves` (`migration`, `number`, `state`, `move_id`, `at`, `launched_by`, `reason`, `run_id`, `overridden`, `detail`)
    VALUES ('orders', 4, 'retired', 'move-id', TIMESTAMP '2026-06-01 12:00:00+00:00', 'ann', '14 quiet days', 'run-1', NULL, NULL)

-- it is committed

SELECT CASE t.table_type WHEN 'VIEW' THEN 'view' ELSE lower(t.table_type) END, v.view_definition, ''
    FROM `project`.`analytics`.INFORMATION_SCHEMA.TABLES AS t
    LEFT JOIN `project`.`analytics`.INFORMATION_SCHEMA.VIEWS AS v ON v.table_name = t.table_name
    WHERE t.table_name = 'orders'

SELECT CASE t.table_type WHEN 'VIEW' THEN 'view' ELSE lower(t.table_type) END, v.view_definition, ''
    FROM `project`.`analytics`.INFORMATION_SCHEMA.TABLES AS t
    LEFT JOIN `project`.`analytics`.INFORMATION_SCHEMA.VIEWS AS v ON v.table_name = t.table_name
    WHERE t.table_name = 'orders_legacy'
