{# Schemas are called as they are configured, in every target: both lanes write the same tables. #}
{% macro generate_schema_name(custom_schema_name, node) -%}
  {%- set name = custom_schema_name or target.schema -%}
  {{- name | upper if target.type == 'snowflake' else name -}}
{%- endmacro %}
