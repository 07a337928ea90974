{# DDL, as the engines do it: what somebody else makes at the same moment is made, and no reader is kept waiting behind it. #}

{% macro backfill_define(statement, lock_wait) -%}
  {#- run it outside of any slice; true once it is done, false where somebody was in the way for all of `lock_wait` -#}
  {%- do return(adapter.dispatch('backfill_define')(statement, lock_wait)) -%}
{%- endmacro %}

{% macro default__backfill_define(statement, lock_wait) -%}
  {%- do backfill_run(statement) -%}
  {%- do return(true) -%}
{%- endmacro %}

{% macro postgres__backfill_define(statement, lock_wait) -%}
  {#- in a transaction of its own: what it locks is locked for a moment -#}
  {%- set anew = 'COMMIT;\n' ~ backfill_spelled().begin_aside -%}
  {%- set found = backfill_fetch(anew ~ postgres__backfill_defining(statement, lock_wait) ~ ";\nSELECT current_setting('backfill.defined', true)")[0][0] -%}
  {%- do backfill_run(anew) -%}
  {%- do return(found == 'yes') -%}
{%- endmacro %}

{% macro postgres__backfill_defining(statement, lock_wait) -%}
  {#- asked again and again: whoever waits to have a table alone keeps all readers waiting behind. IF NOT EXISTS does not see
      what another session is just making, and fails once that is committed -#}
  {%- set ddl, lost = backfill_spelled().ddl, [] -%}
  {%- for state in ddl.lost_race -%}{%- do lost.append("SQLSTATE '" ~ state ~ "'") -%}{%- endfor -%}
  {%- do return("DO $backfill_define$ DECLARE tried_from timestamptz := clock_timestamp(); BEGIN
  PERFORM set_config('backfill.defined', 'no', true);
  LOOP
    BEGIN
      PERFORM set_config('lock_timeout', '" ~ ([[ddl.patience, lock_wait] | min * 1000, 1] | max | int) ~ "', true);
      EXECUTE " ~ backfill_text(statement) ~ ";
      PERFORM set_config('backfill.defined', 'yes', true);
      EXIT;
    EXCEPTION
      WHEN " ~ (lost | join(' OR ')) ~ " THEN
        PERFORM set_config('backfill.defined', 'yes', true);
        EXIT;
      WHEN lock_not_available OR deadlock_detected THEN
        EXIT WHEN clock_timestamp() > tried_from + " ~ lock_wait ~ " * interval '1 second';
        PERFORM pg_sleep(" ~ ddl.pause ~ ");
    END;
  END LOOP;
END $backfill_define$") -%}
{%- endmacro %}

{% macro backfill_make_room(plan, slice) -%}
  {#- the table, and the columns that the model declares to add; nothing may refuse the rows for what they are after this -#}
  {%- for statement in plan.pace.ddl -%}
    {%- if not backfill_define(statement, plan.run.lock_wait) -%}
      {%- do backfill_refuse(plan, slice, 'SliceBusy', backfill_in_the_way(plan) ~ ' holds the table, which has to change for this, and still did after ' ~ plan.run.lock_wait ~ ' s',
          'Let that session finish, then run this day again') -%}
    {%- endif -%}
  {%- endfor -%}
  {%- do plan.pace.ddl.clear() -%}
{%- endmacro %}

{% macro backfill_in_the_way(plan) -%}
  {%- do return(adapter.dispatch('backfill_in_the_way')(plan)) -%}
{%- endmacro %}

{% macro default__backfill_in_the_way(plan) -%}{%- do return('another session') -%}{%- endmacro %}

{% macro postgres__backfill_in_the_way(plan) -%}
  {%- set found = backfill_fetch("SELECT a.application_name, a.pid FROM pg_locks AS l JOIN pg_stat_activity AS a ON a.pid = l.pid WHERE l.relation = to_regclass(" ~ backfill_text(plan.relation) ~ ") AND l.granted AND l.pid <> pg_backend_pid() LIMIT 1") -%}
  {%- do return((found[0][0] or 'a session') ~ ' (process ' ~ found[0][1] ~ ')' if found else 'another session') -%}
{%- endmacro %}

{% macro postgres__create_schema(relation) -%}
  {#- dbt's own, before any model: two dbts that find the schema missing both make it -#}
  {%- if relation.database -%}{{ adapter.verify_database(relation.database) }}{%- endif -%}
  {%- set schema, lock_wait = relation.without_identifier().include(database=False), backfill_run_vars().lock_wait -%}
  {%- if not backfill_define('CREATE SCHEMA IF NOT EXISTS ' ~ schema, lock_wait) -%}
    {%- do exceptions.raise_compiler_error('The schema ' ~ schema ~ ' could not be made: another session was at it for ' ~ lock_wait ~ ' s. Let that session finish, then run this again.') -%}
  {%- endif -%}
{%- endmacro %}
