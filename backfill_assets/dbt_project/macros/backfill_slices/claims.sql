{# The claim on a day, taken first in its transaction: nobody else of ours, dbt or not, writes it until the commit. #}

{% macro backfill_claim(plan, slice) -%}
  {%- do return(adapter.dispatch('backfill_claim')(plan, slice)) -%}
{%- endmacro %}

{% macro default__backfill_claim(plan, slice) -%}
  {%- do backfill_wrong(plan.label, "no claim is known for " ~ target.type, "Use DuckDB, PostgreSQL or Snowflake") -%}
{%- endmacro %}

{% macro duckdb__backfill_claim(plan, slice) -%}
  {#- the file is open in this process and locked by it, so that no other writer is inside -#}
{%- endmacro %}

{% macro postgres__backfill_claim(plan, slice) -%}
  {%- set claim = backfill_spelled().claim -%}
  {%- set days, keys = [], [] -%}
  {%- for day in slice.utc_days -%}
    {%- do days.append(backfill_filled(claim.day, {'day': day})) -%}
    {%- do keys.append(backfill_filled(claim.key, {'day': day})) -%}
  {%- endfor -%}
  {%- set words = {'relation': plan.relation.replace("'", "''"), 'run': (plan.run.run_id | string).replace("'", ""), 'days': days | join(', '), 'keys': keys | join(', ')} -%}
  {%- set patience = (var('lock_wait', 600) | float * 1000) | int -%}
  {#- waiting in the server's own queue; that the wait was too long comes back as a value, since dbt cannot catch an error -#}
  {%- do backfill_run(backfill_filled(claim.who, words)[:110] ~ ('' if backfill_filled(claim.who, words) | length <= 110 else "'") ~ '; ' ~ claim.policies ~ ";
DO $backfill_claim$ DECLARE before text := current_setting('lock_timeout'); BEGIN
  BEGIN
    PERFORM set_config('lock_timeout', '" ~ [patience, 1] | max ~ "', true);
    PERFORM " ~ backfill_filled(claim.days, words) ~ ";
    PERFORM set_config('backfill.claim', 'held', true);
  EXCEPTION WHEN lock_not_available THEN
    PERFORM set_config('backfill.claim', 'busy', true);
  END;
  PERFORM set_config('lock_timeout', before, true);
END $backfill_claim$") -%}
  {%- set found = backfill_fetch("SELECT current_setting('backfill.claim', true), (" ~ backfill_filled(claim.kind, words) ~ ')')[0] -%}
  {%- if found[0] != 'held' -%}
    {%- set holders = backfill_fetch(backfill_filled(claim.holding, words)) -%}
    {%- set who = holders[0][0].replace('backfill_assets ', '') if holders else 'another writer' -%}
    {%- do backfill_refuse(plan, slice, 'SliceBusy', 'it is being rewritten by ' ~ who ~ ', and still was after ' ~ (patience / 1000) ~ ' s',
        'Let that run finish, then run this day again') -%}
  {%- endif -%}
  {%- if found[1] in claim.beyond -%}
    {%- do backfill_refuse(plan, slice, 'DeclarationError', claim.beyond[found[1]][0], claim.beyond[found[1]][1]) -%}
  {%- endif -%}
{%- endmacro %}

{% macro snowflake__backfill_claims_table(plan) -%}
  {%- set table = [plan.database, plan.schema, plan.name] -%}
  {%- set parts = [] -%}
  {%- for part in table -%}{%- do parts.append(backfill_quoted(part)) -%}{%- endfor -%}
  {%- set told = parts | join('.') -%}
  {%- do return({'table': told, 'claims': backfill_quoted(plan.run.audit) ~ '."' ~ backfill_spelled().claim.prefix ~ (local_md5(told)[:20] | upper) ~ '"'}) -%}
{%- endmacro %}

{% macro snowflake__backfill_claim(plan, slice) -%}
  {#- rows of a table that stands for the days: an UPDATE of them waits until the other writer's transaction ends -#}
  {%- set claim, buckets = backfill_spelled().claim, [] -%}
  {%- for day in slice.utc_days if (day.toordinal() % claim.buckets) not in buckets -%}{%- do buckets.append(day.toordinal() % claim.buckets) -%}{%- endfor -%}
  {%- do backfill_run(backfill_filled(claim.update, {'claims': snowflake__backfill_claims_table(plan).claims,
      'run': (plan.run.run_id | string).replace("'", "''"), 'buckets': buckets | sort | join(', ')})) -%}
{%- endmacro %}

{% macro backfill_prepare(plan) -%}
  {#- settings, schemas, the audit table and what claims are made of: DDL, so before any slice -#}
  {%- set spelled = backfill_spelled() -%}
  {%- do backfill_begin() -%}
  {%- do adapter.dispatch('backfill_settings')() -%}
  {%- set words = backfill_audit_words(plan.run) -%}
  {%- if not adapter.dispatch('backfill_is_there')(plan.run.audit, 'load_audit', plan) -%}
    {%- for statement in spelled.audit.definition -%}{%- do backfill_run(backfill_filled(statement, words)) -%}{%- endfor -%}
  {%- endif -%}
  {%- do adapter.dispatch('backfill_prepare_claims')(plan) -%}
  {%- do backfill_commit() -%}
{%- endmacro %}

{% macro default__backfill_settings() -%}
  {#- a role's or an account's own defaults would change what literals mean and how values are hashed -#}
  {%- for statement in backfill_spelled().settings -%}{%- do backfill_run(statement) -%}{%- endfor -%}
{%- endmacro %}

{% macro default__backfill_prepare_claims(plan) -%}{%- endmacro %}

{% macro snowflake__backfill_prepare_claims(plan) -%}
  {%- set told = snowflake__backfill_claims_table(plan) -%}
  {%- do backfill_run(backfill_filled(backfill_spelled().claim.making, {'claims': told.claims, 'comment': backfill_text('{"claims_of": ' ~ tojson(told.table) ~ '}')})) -%}
{%- endmacro %}

{% macro default__backfill_is_there(schema, name, plan) -%}
  {%- do return(backfill_columns(backfill_quoted(schema) ~ '.' ~ backfill_quoted(name), {'schema': schema, 'name': name, 'database': plan.database}) | length > 0) -%}
{%- endmacro %}

{% macro duckdb__backfill_is_there(schema, name, plan) -%}
  {%- do return(backfill_columns('', {'schema': schema, 'name': name ~ '_entries'}) | length > 0) -%}
{%- endmacro %}
