{# After an invocation: what the warehouse refused, where no macro could catch the error, is written down too. #}

{% macro backfill_note_failures(results) -%}
  {%- if execute -%}
  {%- for result in results if (result.status | string) == 'error' and result.node.config.get('materialized') == 'backfill_slices' and 'was left as it was' not in (result.message or '') -%}
    {%- set run, node = backfill_run_vars(), result.node -%}
    {%- set zone = node.config.get('time_zone') or 'UTC' -%}
    {%- set place = backfill_place(node.relation_name, {'database': node.database, 'schema': node.schema, 'name': node.alias or node.name}) -%}
    {%- set label = place.schema ~ '.' ~ place.name -%}
    {%- set plan = {'schema': place.schema, 'name': place.name, 'label': label, 'database': place.database, 'run': run, 'relation': backfill_relation(place),
        'column': node.config.get('slice_column'), 'kind': node.config.get('slice_kind') or 'date', 'zone': zone,
        'code_version': run.code_version or node.checksum.checksum[:12]} -%}
    {%- do backfill_begin_aside() -%}
    {%- if plan.column and backfill_adapter_has_audit(plan) -%}
      {#- days are written in order, so that the first one without a row of this run is the one that failed -#}
      {%- set done = [] -%}
      {%- set audit = backfill_spelled().audit -%}
      {%- for row in backfill_fetch('SELECT ' ~ backfill_quoted('partition_key') ~ ' FROM ' ~ backfill_filled(audit.relation, backfill_audit_words(run)) ~ ' WHERE ' ~ backfill_quoted('run_id') ~ ' = ' ~ backfill_text(run.run_id) ~ ' AND ' ~ backfill_names_in_audit(plan)) -%}{%- do done.append(row[0] | string) -%}{%- endfor -%}
      {%- set left = [] -%}
      {%- for slice in backfill_days(label, zone) if slice.name not in done -%}{%- do left.append(slice) -%}{%- endfor -%}
      {%- if left -%}
        {%- do backfill_note(plan, left[0], 'failed', {'error': 'WriteFailed', 'why': ((result.message or 'no message') | string).split() | join(' ')}) -%}
      {%- endif -%}
    {%- endif -%}
    {%- do adapter.dispatch('backfill_prepared')() -%}
  {%- endfor -%}
  {%- endif -%}
{%- endmacro %}

{% macro backfill_adapter_has_audit(plan) -%}
  {%- do return(adapter.dispatch('backfill_is_there')(plan.run.audit, 'load_audit', plan)) -%}
{%- endmacro %}
