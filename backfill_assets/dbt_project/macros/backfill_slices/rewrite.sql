{# The one way a day reaches a table: stage, then claim, delete, insert, verify, audit, all or nothing. #}

{% materialization backfill_slices, default %}
  {%- set plan = backfill_plan() -%}
  {{ run_hooks(pre_hooks, inside_transaction=False) }}
  {{ run_hooks(pre_hooks, inside_transaction=True) }}
  {%- do backfill_prepare(plan) -%}
  {%- for slice in plan.slices -%}
    {%- do backfill_rewrite(plan, slice, sql) -%}
  {%- endfor -%}
  {%- do backfill_must_hold(plan) -%}
  {%- do backfill_leave(plan) -%}
  {#- all hooks that want a transaction share one, and it is committed: dbt would roll back what is left open -#}
  {%- do backfill_begin_aside() -%}
  {{ run_hooks(post_hooks, inside_transaction=True) }}
  {%- do adapter.dispatch('backfill_hooked')() -%}
  {{ run_hooks(post_hooks, inside_transaction=False) }}
  {%- call noop_statement('main', 'REWRITE ' ~ plan.pace.written ~ ' days, ' ~ plan.pace.rows ~ ' rows', 'REWRITE', plan.pace.rows) -%}{{ sql }}{%- endcall -%}
  {{ return({'relations': [this.incorporate(type='table')]}) }}
{% endmaterialization %}

{% macro backfill_rewrite(plan, slice, sql) -%}
  {#- beside the transaction: the last day is read back, and this one's rows are staged and measured -#}
  {%- do backfill_must_hold(plan) -%}
  {%- set read_at = plan.pace.clock or backfill_now() -%}
  {%- do slice.update({'started_at': read_at, 'predicate': backfill_predicate(plan, slice)}) -%}
  {%- set lane = backfill_lane(plan, slice, read_at) -%}
  {%- do backfill_refuse_over_budget(plan, slice, read_at) -%}
  {%- do backfill_refuse_changed_source(plan, slice, lane, read_at) -%}
  {%- do backfill_stage(plan, slice, backfill_narrowed(sql, slice.start, slice.end)) -%}
  {%- set staged = backfill_measure(plan, slice) -%}
  {%- set findings = backfill_findings(plan, slice, plan.stage_relation) -%}
  {%- do backfill_refuse_failing(plan, slice, findings) -%}
  {%- do backfill_make_room(plan, slice) -%}

  {%- set before = backfill_begin_and_claim(plan, slice, read_at, lane) -%}
  {%- do backfill_refuse_stale(plan, slice, read_at, lane, before) -%}
  {%- do backfill_refuse_shrunk(plan, slice, before.rows, staged.rows) -%}
  {%- set after = backfill_replace(plan, slice) -%}
  {%- do backfill_verify(plan, slice, staged, before, after) -%}
  {%- set row = backfill_audit_row(plan, slice, {'outcome': 'committed', 'lane': lane, 'before': before.rows, 'after': staged.rows,
      'checksum': staged.checksum, 'read_at': read_at, 'started_at': read_at, 'committed_at': after.at,
      'detail': {'findings': findings} if findings else {}}) -%}
  {%- do backfill_audit(plan, slice, row) -%}
  {%- do backfill_commit() -%}
  {%- do plan.pace.update({'unproven': {'slice': slice, 'audit_id': row.audit_id, 'before': before.rows, 'after': staged.rows}}) -%}
{%- endmacro %}

{% macro backfill_stage(plan, slice, sql) -%}
  {%- do adapter.dispatch('backfill_stage')(plan, slice, sql) -%}
{%- endmacro %}

{% macro duckdb__backfill_stage(plan, slice, sql) -%}
  {#- where only this session sees it -#}
  {%- do backfill_run('CREATE OR REPLACE TEMPORARY TABLE ' ~ plan.stage_relation ~ ' AS\n' ~ sql) -%}
{%- endmacro %}

{% macro postgres__backfill_stage(plan, slice, sql) -%}
  {%- do backfill_run('DROP TABLE IF EXISTS ' ~ plan.stage_relation ~ ';\nCREATE TEMPORARY TABLE ' ~ plan.stage_relation ~ ' AS\n' ~ sql) -%}
{%- endmacro %}

{% macro backfill_begin_and_claim(plan, slice, read_at, lane) -%}
  {#- what was staged is kept, the slice's transaction begins, and the day is ours in it: {transaction, rows, rival, loaded} -#}
  {%- do return(adapter.dispatch('backfill_begin_and_claim')(plan, slice, read_at, lane)) -%}
{%- endmacro %}

{% macro backfill_questions(plan, slice, read_at, lane) -%}
  {#- asked once the claim is had: rows of the day now, who wrote it from a later look at the source, and whether anybody did -#}
  {%- set demand = plan.run.require_reason -%}
  {%- set asked = 'SELECT count(*) FROM (' ~ backfill_audit_query(plan, slice, 'was_loaded') ~ ') AS loaded' -%}
  {%- do return([
    backfill_spelled().transaction,
    '(SELECT count(*) FROM ' ~ plan.relation ~ ' WHERE ' ~ slice.predicate ~ ')',
    '(' ~ asked ~ ')' if plan.sources or (not plan.run.reason and demand != 'never' and lane == 'backfill') else '0',
    '(SELECT min(rival.run_id) FROM (' ~ backfill_audit_query(plan, slice, 'newer_read', read_at) ~ ') AS rival' ~ backfill_spelled().rival ~ ')'
  ]) -%}
{%- endmacro %}

{% macro backfill_answers(found) -%}
  {%- do return({'transaction': found[0], 'rows': found[1] | int, 'loaded': (found[2] | int) > 0, 'rival': found[3] or none}) -%}
{%- endmacro %}

{% macro backfill_replace(plan, slice) -%}
  {#- delete, insert, and read the day back inside the transaction: {rows, checksum, transaction, at} -#}
  {%- do return(adapter.dispatch('backfill_replace')(plan, slice)) -%}
{%- endmacro %}

{% macro default__backfill_replace(plan, slice) -%}
  {#- several statements in one go: what an engine answers is the last one's -#}
  {%- set found = backfill_fetch(backfill_deleting(plan, slice) ~ ';\n' ~ backfill_inserting(plan) ~ ';\nSELECT ' ~ (backfill_proofs(plan) | join(', '))
      ~ ' FROM ' ~ plan.relation ~ ' WHERE ' ~ slice.predicate)[0] -%}
  {%- do return(backfill_proven(found)) -%}
{%- endmacro %}

{% macro backfill_deleting(plan, slice) -%}
  {%- do return('DELETE FROM ' ~ plan.relation ~ ' WHERE ' ~ slice.predicate) -%}
{%- endmacro %}

{% macro backfill_inserting(plan) -%}
  {%- do return('INSERT INTO ' ~ plan.relation ~ ' (' ~ (plan.pace.fit.names | join(', ')) ~ ') SELECT ' ~ (plan.pace.fit['values'] | join(', ')) ~ ' FROM ' ~ plan.stage_relation) -%}
{%- endmacro %}

{% macro backfill_proofs(plan) -%}
  {%- do return(['count(*)', plan.pace.fit.checksum, backfill_spelled().transaction, backfill_spelled().clock]) -%}
{%- endmacro %}

{% macro backfill_proven(found) -%}
  {%- do return({'rows': found[0] | int, 'checksum': found[1] | string, 'transaction': found[2], 'at': backfill_read_instant(found[3])}) -%}
{%- endmacro %}

{% macro backfill_audit(plan, slice, row) -%}
  {%- do adapter.dispatch('backfill_audit')(plan, slice, row) -%}
{%- endmacro %}

{% macro default__backfill_audit(plan, slice, row) -%}
  {%- do backfill_run(backfill_audit_insert(plan, row)) -%}
{%- endmacro %}

{% macro backfill_must_hold(plan) -%}
  {#- a COMMIT that returns proves nothing; asked beside the next day's stage, or at the end -#}
  {%- set last = plan.pace.unproven -%}
  {%- if last -%}
    {%- set audit = backfill_spelled().audit -%}
    {%- set found = backfill_fetch(backfill_spelled().begin_aside ~ 'SELECT count(*), ' ~ backfill_spelled().clock ~ ' FROM ' ~ backfill_filled(audit.stored, backfill_audit_words(plan.run)) ~ ' WHERE ' ~ backfill_quoted('audit_id') ~ ' = ' ~ backfill_text(last.audit_id))[0] -%}
    {%- if (found[0] | int) != 1 -%}
      {%- do backfill_wrong(plan.label ~ ' ' ~ last.slice.name, 'the commit was reported and its audit row is not there', 'Look at the warehouse, then run this day again') -%}
    {%- endif -%}
    {%- do plan.pace.update({'unproven': none, 'clock': backfill_read_instant(found[1]), 'written': plan.pace.written + 1, 'rows': plan.pace.rows + last.after}) -%}
    {%- do log('backfill: ' ~ plan.label ~ ' ' ~ last.slice.name ~ ' holds ' ~ last.after ~ ' rows, ' ~ last.before ~ ' before (' ~ plan.pace.written ~ ' of ' ~ (plan.slices | length) ~ ')', info=true) -%}
  {%- endif -%}
{%- endmacro %}

{% macro backfill_leave(plan) -%}
  {#- nothing of ours stays: no stage, and no setting where the session goes on -#}
  {%- do adapter.dispatch('backfill_leave')(plan) -%}
{%- endmacro %}

{% macro default__backfill_leave(plan) -%}
  {%- do backfill_run('DROP TABLE IF EXISTS ' ~ plan.stage_relation) -%}
  {%- do backfill_commit() -%}
{%- endmacro %}
