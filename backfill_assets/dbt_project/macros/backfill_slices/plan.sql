{# What a model declares and what the invocation was told, as one plan; what cannot be right is refused here. #}

{% macro backfill_plan() -%}
  {%- set place = backfill_place(this | string, {'database': this.database, 'schema': this.schema, 'name': this.identifier}) -%}
  {%- set label = place.schema ~ '.' ~ place.name -%}
  {%- set column = config.get('slice_column') -%}
  {%- if not column -%}
    {%- do backfill_wrong(label, "the model names no slice_column, so a second run would not know what to delete", "Add slice_column='the_column_of_the_day' to its config, and filter its source with in_slice()") -%}
  {%- endif -%}
  {%- if '/*backfill {' not in sql -%}
    {%- do backfill_wrong(label, "the model never says in_slice(), so that each day would read all of its source", "Write where {{ in_slice('the_time_column') }} at the source that has the days") -%}
  {%- endif -%}
  {%- set kind = config.get('slice_kind', 'date') -%}
  {%- set policy = config.get('schema_policy', 'fail') -%}
  {%- set keys = config.get('unique_key') or [] -%}
  {%- if kind not in backfill_spelled().literals -%}
    {%- do backfill_wrong(label, "slice_kind '" ~ kind ~ "' cannot be compared safely with a window", "Declare one of " ~ (backfill_spelled().literals.keys() | join(', '))) -%}
  {%- endif -%}
  {%- if policy not in ('fail', 'add', 'ignore') -%}
    {%- do backfill_wrong(label, "there is no schema_policy '" ~ policy ~ "'", "Choose fail, add or ignore") -%}
  {%- endif -%}
  {%- if should_full_refresh() -%}
    {%- do backfill_wrong(label, "--full-refresh would drop every day that the window does not name", "Leave it out, and name the days to rewrite with start and end") -%}
  {%- endif -%}
  {%- do backfill_refuse_configs(label) -%}
  {%- set zone = config.get('time_zone', 'UTC') -%}
  {%- set run = backfill_run_vars() -%}
  {%- set stage = 'backfill_stage_' ~ local_md5(invocation_id ~ label)[:20] -%}
  {%- do return({
    'schema': place.schema, 'name': place.name, 'label': label, 'database': place.database, 'relation': backfill_relation(place),
    'column': column, 'kind': kind, 'zone': zone, 'policy': policy,
    'key_columns': [keys] if keys is string else keys,
    'duplicate_keys': config.get('duplicate_keys', 'block'),
    'allow_empty': config.get('allow_empty', false),
    'max_shrink': config.get('max_shrink', 0.5), 'shrink_floor': config.get('shrink_floor', 100),
    'slices': backfill_days(label, zone), 'run': run,
    'code_version': run.code_version or model.checksum.checksum[:12],
    'stage': stage, 'stage_relation': backfill_stage_relation(stage, run),
    'sources': backfill_changing_sources(), 'rules': backfill_rules(),
    'pace': {'fit': none, 'asked': none, 'written': 0, 'rows': 0, 'ddl': [], 'clock': none, 'unproven': none}
  }) -%}
{%- endmacro %}

{% macro backfill_refuse_configs(label) -%}
  {#- what other materializations apply when they make a table anew, which these never do -#}
  {%- set docs, unheeded = config.get('persist_docs') or {}, [] -%}
  {%- if config.get('grants') -%}{%- do unheeded.append('grants') -%}{%- endif -%}
  {%- if docs.get('relation') or docs.get('columns') -%}{%- do unheeded.append('persist_docs') -%}{%- endif -%}
  {%- if (config.get('contract') or {'enforced': false}).enforced -%}{%- do unheeded.append('contract') -%}{%- endif -%}
  {%- if config.get('indexes') -%}{%- do unheeded.append('indexes') -%}{%- endif -%}
  {%- if unheeded -%}
    {%- do backfill_wrong(label, 'its config has ' ~ (unheeded | join(', ')) ~ ', which is not applied to a table that stays and is written by days', 'Leave it out of this model, and do that once by hand or in a post_hook; schema_policy says what becomes of columns') -%}
  {%- endif -%}
  {%- if target.type == 'duckdb' and (target.threads or 1) > 1 -%}
    {%- do backfill_wrong(label, 'the profile has ' ~ target.threads ~ ' threads, and DuckDB lets only one transaction make a table or a column', "Write threads: 1 in dbt's profile, and no --threads") -%}
  {%- endif -%}
{%- endmacro %}

{% macro backfill_place(rendered, told) -%}
  {#- where a model's table is, in the names that this program has for it -#}
  {%- do return(adapter.dispatch('backfill_place')(rendered, told)) -%}
{%- endmacro %}

{% macro default__backfill_place(rendered, told) -%}
  {%- if (told.database or target.database) | lower != target.database | lower -%}
    {%- do backfill_wrong(told.schema ~ '.' ~ told.name, "its config names the database '" ~ told.database ~ "', and no transaction there has the audit in it too", "Leave database out, or run dbt with a profile of that database") -%}
  {%- endif -%}
  {%- do return(told) -%}
{%- endmacro %}

{% macro postgres__backfill_place(rendered, told) -%}
  {#- what `quoting` leaves without quotes the server folds -#}
  {%- set place, names = default__backfill_place(rendered, told), [] -%}
  {%- for part in modules.re.findall('"(?:[^"]|"")*"|[^".]+', rendered) -%}
    {%- do names.append(part[1:-1].replace('""', '"') if part.startswith('"') else part | lower) -%}
  {%- endfor -%}
  {%- do return({'database': place.database, 'schema': names[-2], 'name': names[-1]}) -%}
{%- endmacro %}

{% macro backfill_relation(place) -%}{%- do return(adapter.dispatch('backfill_relation')(place)) -%}{%- endmacro %}

{% macro default__backfill_relation(place) -%}
  {%- do return(backfill_quoted(place.schema) ~ '.' ~ backfill_quoted(place.name)) -%}
{%- endmacro %}

{% macro backfill_stage_relation(stage, run) -%}{%- do return(adapter.dispatch('backfill_stage_relation')(stage, run)) -%}{%- endmacro %}

{% macro default__backfill_stage_relation(stage, run) -%}{%- do return(backfill_quoted(stage)) -%}{%- endmacro %}

{% macro backfill_run_vars() -%}
  {%- set allow = (var('allow', '') or '') | string -%}
  {%- set allows = [] -%}
  {%- for part in allow.split(',') if part.strip() -%}{%- do allows.append(part.strip()) -%}{%- endfor -%}
  {%- if var('lane', none) not in (none, '', 'live', 'backfill') -%}
    {%- do exceptions.raise_compiler_error("Every model was left as it was: the var 'lane' is '" ~ var('lane') ~ "', and there are live and backfill alone. Correct it.") -%}
  {%- endif -%}
  {%- if var('require_reason', 'backfill') not in ('backfill', 'always', 'never') -%}
    {%- do exceptions.raise_compiler_error("Every model was left as it was: the var 'require_reason' is '" ~ var('require_reason') ~ "', and there are backfill, always and never alone. Correct it.") -%}
  {%- endif -%}
  {%- set reason = ((var('reason', '') or '') | string).strip() or none -%}
  {%- set known = ('empty', 'shrink', 'retention', 'duplicate_keys', 'row_count', 'totals') -%}
  {%- for one in allows if one not in known and not one.startswith('rule:') -%}
    {%- do exceptions.raise_compiler_error("The run may not allow '" ~ one ~ "': no guard has that name. Choose from " ~ (known | join(', ')) ~ ", or rule:name for a test of the model.") -%}
  {%- endfor -%}
  {%- if allows and not reason -%}
    {%- do exceptions.raise_compiler_error("The run may not pass the guard " ~ (allows | join(', ')) ~ ": it gives no reason. Add the var 'reason' with a sentence that will still make sense in a year.") -%}
  {%- endif -%}
  {%- do return({
    'run_id': var('run_id', none) or invocation_id, 'backfill_id': var('backfill_id', none),
    'lane': var('lane', none) or ('backfill' if target.name == 'backfill' else none),
    'reason': reason, 'ticket': var('ticket', none), 'allows': allows,
    'launched_by': var('launched_by', none) or env_var('USER', '') or none,
    'code_version': var('code_version', none), 'strategy': 'recompute',
    'audit': var('backfill_audit_schema', 'backfill'),
    'stage_schema': var('backfill_stage_schema', none) or backfill_of_door('STAGE_SCHEMA', 'backfill'),
    'lock_wait': backfill_number('lock_wait', var('lock_wait', backfill_of_door('LOCK_WAIT', '600'))),
    'statement_timeout': backfill_number('statement_timeout', var('statement_timeout', backfill_of_door('STATEMENT_TIMEOUT', '0'))),
    'require_reason': var('require_reason', 'backfill'), 'live_days': backfill_number('live_days', var('live_days', 3)),
    'detail': fromjson(var('run_detail', '{}') | string)
  }) -%}
{%- endmacro %}

{% macro backfill_of_door(name, otherwise) -%}
  {#- a setting of the lane's own door to the warehouse, or else of the live one's -#}
  {%- set found = env_var('BACKFILL_DBT_' ~ name, otherwise) -%}
  {%- do return(env_var('BACKFILL_DBT_LANE_' ~ name, found) if target.name == 'backfill' else found) -%}
{%- endmacro %}

{% macro backfill_number(name, given) -%}
  {#- what is no number would count as 0 -#}
  {%- if not modules.re.match('^[0-9]+([.][0-9]+)?$', given | string) -%}
    {%- do exceptions.raise_compiler_error("Every model was left as it was: the var '" ~ name ~ "' is '" ~ given ~ "', which is no number. Write it as digits, for example " ~ name ~ ": 600.") -%}
  {%- endif -%}
  {%- do return(given | float) -%}
{%- endmacro %}

{% macro backfill_lane(plan, slice, now) -%}
  {#- as Dagster's lanes: told, or by how long ago the day ended -#}
  {%- if plan.run.lane -%}{%- do return(plan.run.lane) -%}{%- endif -%}
  {%- do return('backfill' if slice.end < now - modules.datetime.timedelta(days=plan.run.live_days) else 'live') -%}
{%- endmacro %}

{% macro backfill_predicate(plan, slice) -%}
  {%- do return(backfill_between(backfill_quoted(plan.column), plan.kind, plan.zone, slice.start, slice.end)) -%}
{%- endmacro %}

{% macro backfill_wrong(label, why, do_) -%}
  {%- do exceptions.raise_compiler_error(label ~ ' was left as it was: ' ~ why ~ '. ' ~ do_ ~ '.') -%}
{%- endmacro %}
