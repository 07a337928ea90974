{# Names, literals and statements, as writing/ and engines/sql.py write them. #}

{% macro backfill_stored(name) -%}
  {#- an engine that folds names stores fct_orders as FCT_ORDERS, and createdAt as it is -#}
  {%- set plain = modules.re.match('^[a-z_][a-z0-9_$]*$', name) -%}
  {%- do return(name | upper if backfill_spelled().folds_upper and plain else name) -%}
{%- endmacro %}

{% macro backfill_quoted(name) -%}
  {%- do return('"' ~ backfill_stored(name).replace('"', '""') ~ '"') -%}
{%- endmacro %}

{% macro backfill_listed(names, prefix='') -%}
  {%- set found = [] -%}
  {%- for name in names -%}{%- do found.append(prefix ~ backfill_quoted(name)) -%}{%- endfor -%}
  {%- do return(found | join(', ')) -%}
{%- endmacro %}

{% macro backfill_text(value) -%}
  {%- if value is none -%}{%- do return('NULL') -%}{%- endif -%}
  {%- set value = value | string -%}
  {%- if backfill_spelled().escapes_backslashes -%}{%- set value = value.replace('\\', '\\\\') -%}{%- endif -%}
  {%- do return("'" ~ value.replace("'", "''") ~ "'") -%}
{%- endmacro %}

{% macro backfill_instant(value) -%}
  {%- do return('NULL' if value is none else backfill_spelled().literals.timestamptz.format(value.isoformat(' '))) -%}
{%- endmacro %}

{% macro backfill_filled(sql, words) -%}
  {#- put values where a generated statement says <<word>> -#}
  {%- set found = namespace(sql=sql) -%}
  {%- for word, value in words.items() -%}
    {%- set found.sql = found.sql.replace('<<' ~ word ~ '>>', value | string) -%}
  {%- endfor -%}
  {%- do return(found.sql) -%}
{%- endmacro %}

{% macro backfill_run(sql) -%}
  {#- dbt takes a transaction for begun with the first statement after a commit, and rolls it back on an error -#}
  {%- call statement('backfill', fetch_result=false, auto_begin=true) -%}{{ sql }}{%- endcall -%}
{%- endmacro %}

{% macro backfill_fetch(sql) -%}
  {%- call statement('backfill', fetch_result=true, auto_begin=true) -%}{{ sql }}{%- endcall -%}
  {%- do return(load_result('backfill')['data']) -%}
{%- endmacro %}

{% macro backfill_now() -%}
  {%- set clock = backfill_spelled().clock -%}
  {%- do return(backfill_read_instant('' if clock == "''" else backfill_fetch('SELECT ' ~ clock)[0][0])) -%}
{%- endmacro %}

{% macro backfill_read_instant(shown) -%}
  {#- what the warehouse's clock showed; DuckDB runs in this process, whose clock it has -#}
  {%- if not shown -%}{%- do return(modules.datetime.datetime.now(modules.pytz.utc)) -%}{%- endif -%}
  {%- do return(modules.pytz.utc.localize(modules.datetime.datetime.strptime(shown | string, '%Y-%m-%d %H:%M:%S.%f'))) -%}
{%- endmacro %}
