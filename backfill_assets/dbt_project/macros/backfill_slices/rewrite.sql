{# The one way a day reaches a table: stage, then claim, delete, insert, verify, audit, all or nothing. #}

{% materialization backfill_slices, default %}
  {%- set plan = backfill_plan() -%}
  {%- do plan.update({'stage_relation': backfill_quoted(plan.stage)}) -%}
  {{ run_hooks(pre_hooks, inside_transaction=False) }}
  {{ run_hooks(pre_hooks, inside_transaction=True) }}
  {%- do backfill_prepare(plan) -%}
  {%- for slice in plan.slices -%}
    {%- do backfill_rewrite(plan, slice, sql) -%}
  {%- endfor -%}
  {{ run_hooks(post_hooks, inside_transaction=True) }}
  {{ run_hooks(post_hooks, inside_transaction=False) }}
  {%- call noop_statement('main', 'REWRITE ' ~ plan.pace.written ~ ' days, ' ~ plan.pace.rows ~ ' rows', 'REWRITE', plan.pace.rows) -%}{{ sql }}{%- endcall -%}
  {{ return({'relations': [this.incorporate(type='table')]}) }}
{% endmaterialization %}

{% macro backfill_rewrite(plan, slice, sql) -%}
  {%- do backfill_begin() -%}
  {%- set read_at = backfill_now() -%}
  {%- do slice.update({'started_at': read_at}) -%}
  {%- set lane = backfill_lane(plan, slice, read_at) -%}
  {%- do backfill_refuse_over_budget(plan, slice, read_at) -%}
  {%- do backfill_refuse_changed_source(plan, slice, lane, read_at) -%}
  {%- do backfill_stage(plan, backfill_narrowed(sql, slice.start, slice.end)) -%}
  {%- set staged = backfill_measure(plan, slice) -%}
  {%- set findings = backfill_findings(plan, slice, plan.stage_relation) -%}
  {%- do backfill_refuse_failing(plan, slice, findings) -%}
  {%- do backfill_commit() -%}

  {%- do backfill_begin() -%}
  {%- do backfill_claim(plan, slice) -%}
  {%- set before = backfill_refuse_stale(plan, slice, read_at, lane) -%}
  {%- do backfill_refuse_shrunk(plan, slice, before.rows, staged.rows) -%}
  {%- do backfill_run('DELETE FROM ' ~ plan.relation ~ ' WHERE ' ~ backfill_predicate(plan, slice) ~ ';\n'
      ~ 'INSERT INTO ' ~ plan.relation ~ ' (' ~ (plan.pace.fit.names | join(', ')) ~ ') SELECT ' ~ (plan.pace.fit['values'] | join(', ')) ~ ' FROM ' ~ plan.stage_relation) -%}
  {%- do backfill_verify(plan, slice, staged, before.transaction) -%}
  {%- set row = backfill_audit_row(plan, slice, {'outcome': 'committed', 'lane': lane, 'before': before.rows, 'after': staged.rows,
      'checksum': staged.checksum, 'read_at': read_at, 'started_at': read_at, 'committed_at': backfill_now(),
      'detail': {'findings': findings} if findings else {}}) -%}
  {%- do backfill_run(backfill_audit_insert(plan, row)) -%}
  {%- do backfill_commit() -%}

  {%- do backfill_must_hold(plan, slice, row) -%}
  {%- do plan.pace.update({'written': plan.pace.written + 1, 'rows': plan.pace.rows + staged.rows}) -%}
  {%- do log('backfill: ' ~ plan.label ~ ' ' ~ slice.name ~ ' holds ' ~ staged.rows ~ ' rows, ' ~ before.rows ~ ' before (' ~ plan.pace.written ~ ' of ' ~ (plan.slices | length) ~ ')', info=true) -%}
{%- endmacro %}

{% macro backfill_stage(plan, sql) -%}
  {#- beside the table, where only this session sees it -#}
  {%- do backfill_run('CREATE TEMPORARY TABLE ' ~ plan.stage_relation ~ ' AS\n' ~ sql) -%}
{%- endmacro %}

{% macro backfill_must_hold(plan, slice, row) -%}
  {#- a COMMIT that returns proves nothing; the stage is of no more use -#}
  {%- set audit = backfill_spelled().audit -%}
  {%- do backfill_begin() -%}
  {%- set found = backfill_fetch('SELECT count(*) FROM ' ~ backfill_filled(audit.stored, backfill_audit_words(plan.run)) ~ ' WHERE ' ~ backfill_quoted('audit_id') ~ ' = ' ~ backfill_text(row.audit_id)) -%}
  {%- if (found[0][0] | int) != 1 -%}
    {%- do backfill_wrong(plan.label ~ ' ' ~ slice.name, 'the commit was reported and its audit row is not there', 'Look at the warehouse, then run this day again') -%}
  {%- endif -%}
  {%- do backfill_run('DROP TABLE IF EXISTS ' ~ plan.stage_relation) -%}
  {%- do backfill_commit() -%}
{%- endmacro %}
