{# dbt's own on Snowflake is a clock without a zone, which a column of instants reads in the session's zone. #}
{% macro snowflake__snapshot_get_time() -%}
  convert_timezone('UTC', current_timestamp())
{%- endmacro %}
