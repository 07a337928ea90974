{# load_audit: the row of a replaced slice, in its transaction, and of an attempt that changed nothing. #}

{% macro backfill_audit_words(run) -%}
  {%- do return({'audit': backfill_quoted(run.audit)}) -%}
{%- endmacro %}

{% macro backfill_names_in_audit(plan) -%}
  {#- the table by every name that it may have been written under -#}
  {%- set spelled = backfill_spelled() -%}
  {%- set schema, name = plan.schema, plan.name -%}
  {%- set names = [schema ~ '.' ~ name, plan.database ~ '.' ~ schema ~ '.' ~ name] -%}
  {%- if schema == spelled.default_schema -%}{%- do names.append(name) -%}{%- endif -%}
  {%- set shown = [] -%}
  {%- for one in names -%}{%- do shown.append(backfill_text(one if spelled.case_sensitive else one | lower)) -%}{%- endfor -%}
  {%- do return(spelled.audit.table_name ~ ' IN (' ~ (shown | join(', ')) ~ ')') -%}
{%- endmacro %}

{% macro backfill_audit_query(plan, slice, query, read_at=none) -%}
  {%- do return(backfill_filled(backfill_spelled().audit[query], {
    'audit': backfill_quoted(plan.run.audit), 'names': backfill_names_in_audit(plan),
    'start': backfill_instant(slice.start), 'end': backfill_instant(slice.end),
    'read_at': backfill_instant(read_at) if read_at is not none else ''})) -%}
{%- endmacro %}

{% macro backfill_audit_row(plan, slice, told) -%}
  {#- every field of writing.audit.Load -#}
  {%- set now = told.committed_at -%}
  {%- set detail = {} -%}
  {%- do detail.update(plan.run.detail) -%}
  {%- do detail.update(told.detail) -%}
  {%- if plan.run.allows -%}{%- do detail.update({'allowed': plan.run.allows | sort}) -%}{%- endif -%}
  {%- do return({
    'audit_id': local_md5(invocation_id ~ plan.label ~ slice.name ~ now.isoformat()),
    'table_name': plan.label, 'partition_key': slice.name,
    'window_start': slice.start, 'window_end': slice.end, 'dimensions': '{}',
    'outcome': told.outcome, 'strategy': plan.run.strategy, 'lane': told.lane,
    'rows_before': told.before, 'rows_after': told.after, 'checksum': told.checksum,
    'reason': plan.run.reason, 'ticket': plan.run.ticket, 'launched_by': plan.run.launched_by,
    'run_id': plan.run.run_id, 'backfill_id': plan.run.backfill_id, 'code_version': plan.code_version,
    'source_read_at': told.read_at, 'started_at': told.started_at, 'committed_at': now,
    'seconds': (now - told.started_at).total_seconds(), 'cost': none,
    'detail': tojson(detail) if detail else none
  }) -%}
{%- endmacro %}

{% macro backfill_audit_insert(plan, row) -%}
  {%- set audit = backfill_spelled().audit -%}
  {%- set columns, values = [], [] -%}
  {%- for name in audit.columns -%}
    {%- do columns.append(backfill_quoted(name)) -%}
    {%- if audit.fields[name] == 'datetime' -%}{%- do values.append(backfill_instant(row[name])) -%}
    {%- elif row[name] is none or audit.fields[name] == 'str' -%}{%- do values.append(backfill_text(row[name])) -%}
    {%- else -%}{%- do values.append(row[name] | string) -%}{%- endif -%}
  {%- endfor -%}
  {%- if audit.entry -%}
    {%- set entry = {} -%}
    {%- for name, value in row.items() if name not in audit.columns and value is not none -%}
      {%- do entry.update({name: value.isoformat() if audit.fields[name] == 'datetime' else value}) -%}
    {%- endfor -%}
    {%- do columns.append('entry') -%}
    {%- do values.append(backfill_text(tojson(entry))) -%}
  {%- endif -%}
  {%- do return('INSERT INTO ' ~ backfill_filled(audit.stored, backfill_audit_words(plan.run)) ~ ' (' ~ (columns | join(', ')) ~ ') VALUES (' ~ (values | join(', ')) ~ ')') -%}
{%- endmacro %}

{% macro backfill_refuse(plan, slice, error, why, what_now, detail={}, outcome='refused') -%}
  {#- undo, write down that and why nothing was changed, and stop the model with the sentence -#}
  {%- set sentence = plan.label ~ ' ' ~ slice.name ~ ' was left as it was: ' ~ why ~ '. ' ~ what_now ~ '.' -%}
  {%- do backfill_begin_again() -%}
  {%- set told = {'error': error, 'why': sentence} -%}
  {%- do told.update(detail) -%}
  {%- do backfill_note(plan, slice, outcome, told) -%}
  {%- do adapter.dispatch('backfill_refused')(plan) -%}
  {%- do exceptions.raise_compiler_error(sentence ~ backfill_rest(plan, slice)) -%}
{%- endmacro %}

{% macro default__backfill_refused(plan) -%}{%- do backfill_commit() -%}{%- endmacro %}

{% macro backfill_note(plan, slice, outcome, detail) -%}
  {%- set now = backfill_now() -%}
  {%- set there = backfill_columns(plan.relation, plan) | length > 0 -%}
  {%- set rows = (backfill_fetch('SELECT count(*) FROM ' ~ plan.relation ~ ' WHERE ' ~ backfill_predicate(plan, slice))[0][0] | int) if there else 0 -%}
  {%- set started = slice.get('started_at') or now -%}
  {%- set row = backfill_audit_row(plan, slice, {
    'outcome': outcome, 'lane': backfill_lane(plan, slice, now), 'before': rows, 'after': rows, 'checksum': '',
    'read_at': started, 'started_at': started, 'committed_at': now, 'detail': detail}) -%}
  {%- do backfill_run(backfill_audit_insert(plan, row)) -%}
{%- endmacro %}

{% macro backfill_rest(plan, slice) -%}
  {#- what became of the others, where the run is about several days -#}
  {%- set total, done = plan.slices | length, plan.pace.written -%}
  {%- if total < 2 -%}{%- do return('') -%}{%- endif -%}
  {%- do return(' It is day ' ~ (done + 1) ~ ' of ' ~ total ~ ' in this run: the ' ~ done ~ ' before it are committed and stay, the '
      ~ (total - done - 1) ~ ' after it were not begun; run again from ' ~ slice.name ~ ' on.') -%}
{%- endmacro %}
