{# Where a transaction begins and ends. dbt's own idea of it is kept true, since that is what it rolls back by. #}

{% macro backfill_begin_aside() -%}
  {#- for what stands beside a slice: staging, notes, what is read back -#}
  {%- if backfill_spelled().begin_aside -%}{%- do backfill_run(backfill_spelled().begin_aside) -%}{%- endif -%}
{%- endmacro %}

{% macro backfill_commit() -%}{%- do adapter.dispatch('backfill_commit')() -%}{%- endmacro %}

{% macro default__backfill_commit() -%}{%- do adapter.commit() -%}{%- endmacro %}

{% macro backfill_begin_again() -%}{%- do adapter.dispatch('backfill_begin_again')() -%}{%- endmacro %}

{% macro default__backfill_begin_again() -%}
  {#- undo everything and begin anew, so that dbt's own idea of an open transaction stays true -#}
  {%- do backfill_run('ROLLBACK') -%}
  {%- do backfill_run('BEGIN') -%}
{%- endmacro %}

{% macro backfill_must_be_one_transaction(plan, slice, first, second) -%}
  {%- if first is none or first | string == '' or first | string != second | string -%}
    {%- do backfill_refuse(plan, slice, 'WriteFailed', 'its statements commit one by one, so that a failure could leave it empty', "Leave out disable_transactions and autocommit in dbt's profile") -%}
  {%- endif -%}
{%- endmacro %}

{% macro default__backfill_hooked() -%}
  {#- where no hook was, there is no transaction to commit yet -#}
  {%- do backfill_run('SELECT 1') -%}
  {%- do backfill_commit() -%}
{%- endmacro %}
