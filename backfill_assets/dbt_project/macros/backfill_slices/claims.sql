{# The claim on a day, taken first in its transaction: nobody else of ours, dbt or not, writes it until the commit. #}

{% macro default__backfill_begin_and_claim(plan, slice, read_at, lane) -%}
  {%- do backfill_wrong(plan.label, "no claim is known for " ~ target.type, "Use DuckDB, PostgreSQL or Snowflake") -%}
{%- endmacro %}

{% macro duckdb__backfill_begin_and_claim(plan, slice, read_at, lane) -%}
  {#- the file is open in this process and locked by it, so that no other writer is inside -#}
  {%- set found = backfill_fetch('COMMIT;\nBEGIN TRANSACTION;\nSELECT ' ~ (backfill_questions(plan, slice, read_at, lane) | join(', ')))[0] -%}
  {%- do return(backfill_answers(found)) -%}
{%- endmacro %}

{% macro postgres__backfill_begin_and_claim(plan, slice, read_at, lane) -%}
  {%- set claim = backfill_spelled().claim -%}
  {%- set days, keys = [], [] -%}
  {%- for day in slice.utc_days -%}
    {%- do days.append(backfill_filled(claim.day, {'day': day})) -%}
    {%- do keys.append(backfill_filled(claim.key, {'day': day})) -%}
  {%- endfor -%}
  {%- set words = {'relation': plan.relation.replace("'", "''"), 'run': (plan.run.run_id | string).replace("'", ""), 'days': days | join(', '), 'keys': keys | join(', ')} -%}
  {%- set patience = (plan.run.lock_wait * 1000) | int -%}
  {%- set who = backfill_filled(claim.who, words) -%}
  {#- waiting in the server's own queue; that the wait was too long comes back as a value, since dbt cannot catch an error.
      Each statement of the one message sees what is committed by then, so that the questions are asked after the wait -#}
  {%- set found = backfill_fetch('COMMIT;\n' ~ backfill_spelled().begin_aside ~ who[:110] ~ ('' if who | length <= 110 else "'") ~ '; ' ~ claim.policies ~ ";
DO $backfill_claim$ DECLARE before text := current_setting('lock_timeout'); BEGIN
  BEGIN
    PERFORM set_config('lock_timeout', '" ~ [patience, 1] | max ~ "', true);
    PERFORM " ~ backfill_filled(claim.days, words) ~ ";
    PERFORM set_config('backfill.claim', 'held', true);
  EXCEPTION WHEN lock_not_available THEN
    PERFORM set_config('backfill.claim', 'busy', true);
  END;
  PERFORM set_config('lock_timeout', before, true);
END $backfill_claim$;
SELECT " ~ (backfill_questions(plan, slice, read_at, lane) | join(', ')) ~ ", current_setting('backfill.claim', true), (" ~ backfill_filled(claim.kind, words) ~ ')')[0] -%}
  {%- if found[4] != 'held' -%}
    {%- set holders = backfill_fetch(backfill_filled(claim.holding, words)) -%}
    {%- do backfill_refuse_busy(plan, slice, holders[0][0].replace('backfill_assets ', '') if holders else 'another writer') -%}
  {%- endif -%}
  {%- if found[5] in claim.beyond -%}
    {%- do backfill_refuse(plan, slice, 'DeclarationError', claim.beyond[found[5]][0], claim.beyond[found[5]][1]) -%}
  {%- endif -%}
  {%- do return(backfill_answers(found)) -%}
{%- endmacro %}

{% macro backfill_refuse_busy(plan, slice, who, more='') -%}
  {%- do backfill_refuse(plan, slice, 'SliceBusy', 'it is being rewritten by ' ~ who ~ ', and still was after ' ~ plan.run.lock_wait ~ ' s',
      'Let that run finish, then run this day again' ~ more) -%}
{%- endmacro %}

{% macro backfill_prepare(plan) -%}
  {#- settings, schemas, the audit table and what claims are made of: DDL, so before any slice -#}
  {%- set spelled = backfill_spelled() -%}
  {%- do backfill_begin_aside() -%}
  {%- do adapter.dispatch('backfill_settings')(plan) -%}
  {%- do adapter.dispatch('backfill_prove_transactions')(plan) -%}
  {%- set words = backfill_audit_words(plan.run) -%}
  {%- if not adapter.dispatch('backfill_is_there')(plan.run.audit, 'load_audit', plan) -%}
    {%- for statement in spelled.audit.definition -%}
      {%- if not backfill_define(backfill_filled(statement, words), plan.run.lock_wait) -%}
        {%- do backfill_wrong(plan.label, 'the audit could not be made, since another session was at it for ' ~ plan.run.lock_wait ~ ' s', 'Let that session finish, then run this again') -%}
      {%- endif -%}
    {%- endfor -%}
  {%- endif -%}
  {%- do adapter.dispatch('backfill_prepare_claims')(plan) -%}
  {%- do adapter.dispatch('backfill_prepared')() -%}
{%- endmacro %}

{% macro default__backfill_prepared() -%}{%- do backfill_commit() -%}{%- endmacro %}

{% macro default__backfill_prove_transactions(plan) -%}
  {#- what only one transaction has, asked twice: where each statement commits by itself, no slice is begun -#}
  {%- set asked = 'SELECT ' ~ backfill_spelled().transaction -%}
  {%- set first, second = backfill_fetch(asked)[0][0], backfill_fetch(asked)[0][0] -%}
  {%- if first | string != second | string -%}
    {%- do backfill_wrong(plan.label, 'its statements would commit one by one, so that a failure could leave a day empty', "Leave out disable_transactions and autocommit in dbt's profile") -%}
  {%- endif -%}
{%- endmacro %}

{% macro default__backfill_settings(plan) -%}
  {#- a role's or an account's own defaults would change what literals mean and how values are hashed -#}
  {%- do backfill_run(backfill_spelled().settings | join(';\n')) -%}
{%- endmacro %}

{% macro default__backfill_prepare_claims(plan) -%}{%- endmacro %}

{% macro default__backfill_is_there(schema, name, plan) -%}
  {%- do return(backfill_columns(backfill_quoted(schema) ~ '.' ~ backfill_quoted(name), {'schema': schema, 'name': name}) | length > 0) -%}
{%- endmacro %}

{% macro duckdb__backfill_is_there(schema, name, plan) -%}
  {%- do return(backfill_columns('', {'schema': schema, 'name': name ~ '_entries'}) | length > 0) -%}
{%- endmacro %}
