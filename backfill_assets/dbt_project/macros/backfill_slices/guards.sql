{# What is known of a day's rows before anything is deleted, and the refusals that follow from it. #}

{% macro backfill_measure(plan, slice) -%}
  {#- one scan of the stage: every row belongs to the day, has a key, is there once, and fits its columns -#}
  {%- if plan.pace.fit is none -%}
    {%- do plan.pace.update({'fit': backfill_fit(plan, slice)}) -%}
    {%- do plan.pace.fit.update({'checksum': backfill_checksum(plan.pace.fit)}) -%}
    {%- do plan.pace.update({'asked': backfill_asked_of_stage(plan)}) -%}
  {%- endif -%}
  {%- set keys, column = plan.key_columns, backfill_quoted(plan.column) -%}
  {%- set found = backfill_fetch(backfill_filled(plan.pace.asked, {'belongs': slice.predicate}))[0] -%}
  {%- set total, inside = found[0] | int, found[1] | int -%}
  {%- if inside < total -%}
    {%- do backfill_refuse(plan, slice, 'BadRows', (total - inside) ~ ' of ' ~ total ~ ' rows do not belong to it, ' ~ found[3] ~ ' of them without a value; ' ~ column ~ ' runs from ' ~ found[4] ~ ' to ' ~ found[5] ~ ', and the slice is ' ~ backfill_predicate(plan, slice),
        'Filter the source to the day with in_slice() and give every row a value; where days are off by one, correct the time zone') -%}
  {%- endif -%}
  {%- if keys and (found[6] | int) -%}
    {%- do backfill_refuse(plan, slice, 'BadRows', found[6] ~ ' rows have no value in the unique key (' ~ (plan.key_columns | join(', ')) ~ ')', 'Give every row a key in the model, or leave such rows out') -%}
  {%- endif -%}
  {%- if keys and (found[7] | int) and plan.duplicate_keys != 'warn' and 'duplicate_keys' not in plan.run.allows -%}
    {%- do backfill_refuse(plan, slice, 'BadRows', found[7] ~ ' values of the unique key (' ~ (plan.key_columns | join(', ')) ~ ') come more than once', 'Remove the duplicates in the model, or correct unique_key; if they are right, run with the vars allow: duplicate_keys and reason') -%}
  {%- endif -%}
  {%- do backfill_refuse_lossy(plan, slice) -%}
  {%- if total == 0 and not backfill_empty_is_right(plan, slice) -%}
    {%- do backfill_refuse(plan, slice, 'EmptySlice', 'no rows came for it, and an empty slice is not declared to be right', 'Load the source first; or declare allow_empty (true, or the days); or run with the vars allow: empty and reason') -%}
  {%- endif -%}
  {%- do return({'rows': total, 'checksum': found[2] | string}) -%}
{%- endmacro %}

{% macro backfill_asked_of_stage(plan) -%}
  {#- the question of every day, with a word where the day stands -#}
  {%- set fit, stage, column, kind = plan.pace.fit, plan.stage_relation, backfill_quoted(plan.column), backfill_spelled().text_type -%}
  {%- set asked = ['count(*)', 'count(CASE WHEN <<belongs>> THEN 1 END)', fit.checksum, 'count(*) - count(' ~ column ~ ')',
      'CAST(min(' ~ column ~ ') AS ' ~ kind ~ ')', 'CAST(max(' ~ column ~ ') AS ' ~ kind ~ ')'] -%}
  {%- if plan.key_columns -%}
    {%- set nulls = [] -%}
    {%- for key in plan.key_columns -%}{%- do nulls.append(backfill_quoted(key) ~ ' IS NULL') -%}{%- endfor -%}
    {%- do asked.append('count(CASE WHEN ' ~ (nulls | join(' AND ')) ~ ' THEN 1 END)') -%}
    {%- do asked.append('(SELECT count(*) FROM (SELECT 1 AS one FROM ' ~ stage ~ ' GROUP BY ' ~ backfill_listed(plan.key_columns) ~ ' HAVING count(*) > 1) AS twice)') -%}
  {%- endif -%}
  {%- do return('SELECT ' ~ (asked | join(', ')) ~ ' FROM (SELECT ' ~ backfill_aliased(fit) ~ ' FROM ' ~ stage ~ ') AS staged') -%}
{%- endmacro %}

{% macro backfill_aliased(fit) -%}
  {%- set found = [] -%}
  {%- for name in fit.names -%}{%- do found.append(fit['values'][loop.index0] ~ ' AS ' ~ name) -%}{%- endfor -%}
  {%- do return(found | join(', ')) -%}
{%- endmacro %}

{% macro backfill_empty_is_right(plan, slice) -%}
  {%- set days = plan.allow_empty -%}
  {%- do return('empty' in plan.run.allows or days is sameas true or (days is iterable and slice.name in (days | map('string') | list))) -%}
{%- endmacro %}

{% macro backfill_refuse_lossy(plan, slice) -%}
  {%- for name, was, will, changes in plan.pace.fit.lossy -%}
    {%- set count = backfill_fetch('SELECT count(*) FROM ' ~ plan.stage_relation ~ ' WHERE ' ~ changes)[0][0] | int -%}
    {%- if count -%}
      {%- do backfill_refuse(plan, slice, 'SchemaMismatch', count ~ " values of column '" ~ name ~ "' would change from " ~ was ~ ' to ' ~ will, 'Convert them in the model, or give the column a type that holds them') -%}
    {%- endif -%}
  {%- endfor -%}
{%- endmacro %}

{% macro backfill_refuse_failing(plan, slice, findings) -%}
  {%- set wrong = [] -%}
  {%- for finding in findings if not finding.passed and finding.severity == 'block' and ('rule:' ~ finding.rule) not in plan.run.allows -%}
    {%- do wrong.append(finding) -%}
  {%- endfor -%}
  {%- if wrong -%}
    {%- set told = [] -%}
    {%- for finding in wrong -%}{%- do told.append(finding.why ~ ' (' ~ finding.rule ~ ')') -%}{%- endfor -%}
    {%- do backfill_refuse(plan, slice, 'NotAsExpected', 'its tests failed before the commit: ' ~ (told | join(', ')), 'Correct the source or the model; if the rows are right, run with the vars allow: rule:' ~ wrong[0].rule ~ ' and reason', {'findings': findings}) -%}
  {%- endif -%}
{%- endmacro %}

{% macro backfill_refuse_stale(plan, slice, read_at, lane, before) -%}
  {#- after the claim: nobody wrote the day from a later look at the source, and who rewrites says why -#}
  {%- if before.rival -%}
    {%- do backfill_refuse(plan, slice, 'StaleSource', 'run ' ~ before.rival[:8] ~ ' wrote it from a source read after this run read its own at ' ~ read_at.isoformat(), 'Run this day again, so that it reads the source as it is now') -%}
  {%- endif -%}
  {%- do backfill_refuse_second_copy(plan, slice, read_at, before) -%}
  {%- set demand = plan.run.require_reason -%}
  {%- if not plan.run.reason and demand != 'never' and (demand == 'always' or (before.loaded and lane == 'backfill')) -%}
    {%- do backfill_refuse(plan, slice, 'Refused', 'no reason is given, and ' ~ ('every run needs one here' if demand == 'always' else 'it was loaded before'), "Add the var 'reason' with a sentence that will still make sense in a year") -%}
  {%- endif -%}
{%- endmacro %}

{% macro backfill_refuse_shrunk(plan, slice, before, rows) -%}
  {%- if before < plan.shrink_floor or 'shrink' in plan.run.allows -%}{%- do return(none) -%}{%- endif -%}
  {%- if rows == 0 and ('empty' in plan.run.allows or (plan.allow_empty is not sameas true and backfill_empty_is_right(plan, slice))) -%}{%- do return(none) -%}{%- endif -%}
  {%- if rows < before * (1 - plan.max_shrink) -%}
    {%- do backfill_refuse(plan, slice, 'ShrunkSlice', 'it holds ' ~ before ~ ' rows and only ' ~ rows ~ ' came, a loss beyond ' ~ ((plan.max_shrink * 100) | round | int) ~ '%', 'Look at the source; if the loss is right, run with the vars allow: shrink and reason, or raise max_shrink') -%}
  {%- endif -%}
{%- endmacro %}

{% macro backfill_verify(plan, slice, staged, before, after) -%}
  {#- what is in the table inside the transaction is what was staged, and it is one transaction -#}
  {%- do backfill_must_be_one_transaction(plan, slice, before.transaction, after.transaction) -%}
  {%- if after.rows != staged.rows or after.checksum != staged.checksum -%}
    {%- do backfill_refuse(plan, slice, 'WriteFailed', staged.rows ~ ' rows were staged and ' ~ after.rows ~ ' found with ' ~ ('the same' if after.checksum == staged.checksum else 'another') ~ ' checksum', 'Look for a trigger, a default or another writer that changes rows on their way, then run this again') -%}
  {%- endif -%}
{%- endmacro %}
