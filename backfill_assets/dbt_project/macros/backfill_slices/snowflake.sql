{# What Snowflake needs done its own way. dbt begins and ends no transaction there, and does not roll back after an error:
   the slice's transaction is said in words, and its statements run in blocks that give an error back as a value. #}

{% macro snowflake__backfill_place(rendered, told) -%}
  {#- names as dbt writes them: without quotes they fold, within them they stay -#}
  {%- set names = [] -%}
  {%- for part in modules.re.findall('"(?:[^"]|"")*"|[^".]+', rendered) -%}
    {%- set name = part[1:-1].replace('""', '"') if part.startswith('"') else part | upper -%}
    {%- if part.startswith('"') and name != backfill_stored(name) -%}
      {%- do backfill_wrong(rendered, "its name is quoted in lower case, and without quotes that means " ~ backfill_stored(name) ~ ', another table', "Leave quoting out of its config") -%}
    {%- endif -%}
    {%- do names.append(backfill_told(name)) -%}
  {%- endfor -%}
  {%- do return({'database': names[-3] if names | length > 2 else told.database, 'schema': names[-2], 'name': names[-1]}) -%}
{%- endmacro %}

{% macro backfill_told(name) -%}
  {%- do return(name | lower if backfill_stored(name | lower) == name else name) -%}
{%- endmacro %}

{% macro snowflake__backfill_relation(place) -%}
  {%- do return(backfill_quoted(place.database) ~ '.' ~ backfill_quoted(place.schema) ~ '.' ~ backfill_quoted(place.name)) -%}
{%- endmacro %}

{% macro snowflake__backfill_stage_relation(stage, run) -%}
  {%- do return(backfill_quoted(run.stage_schema) ~ '.' ~ backfill_quoted(stage)) -%}
{%- endmacro %}

{% macro snowflake__backfill_columns(relation, at) -%}
  {#- dbt's own question, which takes a table that is not there for one without columns; sizes are part of a type -#}
  {%- set found = [] -%}
  {%- for column in adapter.get_columns_in_relation(snowflake__backfill_described(relation)) -%}
    {%- if column.name != backfill_stored(column.name) -%}
      {%- do backfill_wrong(relation, "its column '" ~ column.name ~ "' is stored in lower case, and that name means '" ~ backfill_stored(column.name) ~ "' here as it does in SQL without quotes", 'Leave the quotes out in the model, or run ALTER TABLE ... RENAME COLUMN "' ~ column.name ~ '" TO ' ~ backfill_stored(column.name)) -%}
    {%- endif -%}
    {%- set size = (column.numeric_precision ~ ',' ~ (column.numeric_scale or 0)) if column.numeric_precision is not none else column.char_size -%}
    {%- do found.append([backfill_told(column.name), column.dtype if size is none else column.dtype ~ '(' ~ size ~ ')']) -%}
  {%- endfor -%}
  {%- do return(found) -%}
{%- endmacro %}

{% macro snowflake__backfill_described(relation) -%}
  {%- set parts = modules.re.findall('"((?:[^"]|"")*)"', relation) -%}
  {%- do return(api.Relation.create(database=parts[-3] if parts | length > 2 else target.database | upper, schema=parts[-2], identifier=parts[-1], quote_policy={'database': true, 'schema': true, 'identifier': true})) -%}
{%- endmacro %}

{% macro snowflake__backfill_settings(plan) -%}
  {#- somebody's hook may have left a transaction open, and a BEGIN in it would begin nothing -#}
  {%- do backfill_run('ROLLBACK') -%}
  {%- set shown = backfill_fetch("SHOW PARAMETERS LIKE 'QUERY_TAG' IN SESSION") -%}
  {%- set limits = ' LOCK_TIMEOUT = ' ~ ([plan.run.lock_wait | round | int, 1] | max)
      ~ (' STATEMENT_TIMEOUT_IN_SECONDS = ' ~ ([plan.run.statement_timeout | round | int, 1] | max) if plan.run.statement_timeout else '') -%}
  {%- do backfill_run(backfill_spelled().settings[0] ~ limits) -%}
  {%- do plan.pace.update({'tag_before': shown[0][1] if shown else ''}) -%}
{%- endmacro %}

{% macro snowflake__backfill_prove_transactions(plan) -%}
  {#- asked within each of them, since they are begun in words -#}
{%- endmacro %}

{% macro snowflake__backfill_prepared() -%}
  {#- each statement has committed by itself -#}
{%- endmacro %}

{% macro snowflake__backfill_hooked() -%}
  {#- each hook has committed by itself -#}
{%- endmacro %}

{% macro snowflake__backfill_prepare_claims(plan) -%}
  {%- set claims = snowflake__backfill_claims(plan) -%}
  {%- if not backfill_columns(claims, none) -%}
    {%- do backfill_run(backfill_filled(backfill_spelled().create_schema, {'schema': backfill_quoted(plan.run.stage_schema)})) -%}
    {%- do backfill_run(backfill_filled(backfill_spelled().claim.making, {'claims': claims, 'comment': backfill_text('{"claims_of": ' ~ snowflake__backfill_json(plan.relation) ~ '}')})) -%}
  {%- endif -%}
  {#- what writers that were killed left behind, by the time in the comments -#}
  {%- set yesterday = (backfill_now() - modules.datetime.timedelta(days=1)).isoformat() -%}
  {%- for name, told in snowflake__backfill_stages(plan) if told.at and told.at < yesterday -%}
    {%- do backfill_run('DROP TABLE IF EXISTS ' ~ backfill_quoted(plan.run.stage_schema) ~ '.' ~ backfill_quoted(name)) -%}
  {%- endfor -%}
{%- endmacro %}

{% macro snowflake__backfill_claims(plan) -%}
  {%- do return(backfill_quoted(plan.run.stage_schema) ~ '."' ~ backfill_spelled().claim.prefix ~ (local_md5(plan.relation)[:20] | upper) ~ '"') -%}
{%- endmacro %}

{% macro snowflake__backfill_buckets(slice) -%}
  {%- set buckets, count = [], backfill_spelled().claim.buckets -%}
  {%- for day in slice.utc_days if (day.toordinal() % count) not in buckets -%}{%- do buckets.append(day.toordinal() % count) -%}{%- endfor -%}
  {%- do return(buckets | sort) -%}
{%- endmacro %}

{% macro snowflake__backfill_stages(plan) -%}
  {%- set found = [] -%}
  {%- for name, comment in backfill_fetch('SELECT table_name, comment FROM information_schema.tables WHERE table_schema = ' ~ backfill_text(backfill_stored(plan.run.stage_schema)) ~ " AND startswith(table_name, 'BACKFILL_STAGE_')") -%}
    {%- set told = fromjson(comment or '', none) -%}
    {%- if told is mapping -%}{%- do found.append([name, told]) -%}{%- endif -%}
  {%- endfor -%}
  {%- do return(found) -%}
{%- endmacro %}

{% macro snowflake__backfill_json(value) -%}
  {%- do return(tojson(value).replace("'", '\\u0027')) -%}
{%- endmacro %}

{% macro snowflake__backfill_stage(plan, slice, sql) -%}
  {#- a table that others see: its comment says who is about to write what, for whoever waits in vain -#}
  {%- set who = 'run ' ~ plan.run.run_id -%}
  {%- set tag = {'app': 'backfill_assets', 'who': who, 'table': plan.relation.replace('"', ''), 'partition': slice.name, 'run': plan.run.run_id} -%}
  {%- if plan.run.backfill_id -%}{%- do tag.update({'backfill': plan.run.backfill_id}) -%}{%- endif -%}
  {%- set shown = tojson(tag) -%}
  {%- do backfill_run('ALTER SESSION SET QUERY_TAG = ' ~ backfill_text(shown if shown | length <= 2000 else tojson({'run': plan.run.run_id}))) -%}
  {%- set note = {'who': who, 'table': plan.relation, 'buckets': snowflake__backfill_buckets(slice), 'slice': plan.label ~ ' ' ~ slice.name, 'at': slice.started_at.isoformat(timespec='seconds')} -%}
  {%- do backfill_run('CREATE OR REPLACE TRANSIENT TABLE ' ~ plan.stage_relation ~ ' DATA_RETENTION_TIME_IN_DAYS = 0 COMMENT = ' ~ backfill_text(snowflake__backfill_json(note)) ~ ' AS\n' ~ sql) -%}
{%- endmacro %}

{% macro snowflake__backfill_begin_and_claim(plan, slice, read_at, lane) -%}
  {#- rows of a table that stands for the days: an UPDATE of them waits until the other writer's transaction ends -#}
  {%- do backfill_run('BEGIN TRANSACTION') -%}
  {%- set buckets = snowflake__backfill_buckets(slice) -%}
  {%- set held = snowflake__backfill_done(plan, slice, [backfill_filled(backfill_spelled().claim['update'],
      {'claims': snowflake__backfill_claims(plan), 'run': (plan.run.run_id | string).replace('\\', '\\\\').replace("'", "''"), 'buckets': buckets | join(', ')})]) -%}
  {%- if held.rows != buckets | length -%}
    {%- do backfill_refuse(plan, slice, 'WriteFailed', 'the claims table ' ~ snowflake__backfill_claims(plan) ~ ' has not the rows that it was made with', 'Let somebody drop it while nobody writes ' ~ plan.relation ~ ': it is made again') -%}
  {%- endif -%}
  {%- set found = backfill_answers(snowflake__backfill_asked(plan, slice, backfill_questions(plan, slice, read_at, lane), '')) -%}
  {%- do backfill_must_be_one_transaction(plan, slice, held.transaction, found.transaction) -%}
  {%- do return(found) -%}
{%- endmacro %}

{% macro snowflake__backfill_replace(plan, slice) -%}
  {%- do snowflake__backfill_done(plan, slice, [backfill_deleting(plan, slice), backfill_inserting(plan)]) -%}
  {%- do return(backfill_proven(snowflake__backfill_asked(plan, slice, backfill_proofs(plan), ' FROM ' ~ plan.relation ~ ' WHERE ' ~ slice.predicate))) -%}
{%- endmacro %}

{% macro snowflake__backfill_audit(plan, slice, row) -%}
  {%- do snowflake__backfill_done(plan, slice, [backfill_audit_insert(plan, row)]) -%}
{%- endmacro %}

{% macro snowflake__backfill_commit() -%}{%- do backfill_run('COMMIT') -%}{%- endmacro %}

{% macro snowflake__backfill_done(plan, slice, statements) -%}
  {#- {rows, transaction} of the last statement, seen from where it ran -#}
  {%- set told = snowflake__backfill_tried(plan, slice, 'BEGIN\n' ~ (statements | join(';\n'))
      ~ ";\nRETURN 'done|' || SQLROWCOUNT || '|' || COALESCE(CURRENT_TRANSACTION(), '');\n").split('|') -%}
  {%- do return({'rows': told[0] | int, 'transaction': told[1]}) -%}
{%- endmacro %}

{% macro snowflake__backfill_asked(plan, slice, questions, source) -%}
  {#- the answers as texts, the last of which may hold anything -#}
  {%- set shown = [] -%}
  {%- for question in questions -%}{%- do shown.append('COALESCE(CAST(' ~ question ~ " AS VARCHAR), '')") -%}{%- endfor -%}
  {%- do return(snowflake__backfill_tried(plan, slice, 'DECLARE told VARCHAR;\nBEGIN\nSELECT ' ~ (shown | join(" || '|' || ")) ~ ' INTO :told' ~ source
      ~ ";\nRETURN 'done|' || told;\n").split('|', questions | length - 1)) -%}
{%- endmacro %}

{% macro snowflake__backfill_tried(plan, slice, block) -%}
  {#- an error that dbt met would leave the transaction open, and the next model's DDL would commit it -#}
  {%- set told = backfill_fetch('EXECUTE IMMEDIATE ' ~ backfill_text(block ~ "EXCEPTION WHEN OTHER THEN\nRETURN 'failed|' || SQLCODE || '|' || SQLERRM;\nEND;"))[0][0] | string -%}
  {%- if told.startswith('failed|') -%}
    {%- set code, why = told.split('|', 2)[1:] -%}
    {%- if code == '625' -%}
      {%- do backfill_begin_again() -%}
      {#- a killed dbt ends no transaction, and the account keeps it for hours -#}
      {%- do backfill_refuse_busy(plan, slice, snowflake__backfill_holders(plan, slice),
          '; where it was killed, its transaction is still open: SHOW TRANSACTIONS IN ACCOUNT names its id, and SELECT SYSTEM$ABORT_TRANSACTION(id) ends it') -%}
    {%- endif -%}
    {%- do backfill_refuse(plan, slice, 'WriteFailed', 'the account stopped a statement of its transaction with error ' ~ code ~ ', ' ~ (why.split() | join(' ')), 'Correct that, then run this day again', outcome='failed') -%}
  {%- endif -%}
  {%- do return(told[5:]) -%}
{%- endmacro %}

{% macro snowflake__backfill_holders(plan, slice) -%}
  {%- set mine, who = snowflake__backfill_buckets(slice), [] -%}
  {%- for name, told in snowflake__backfill_stages(plan) if told.table == plan.relation and told.who != 'run ' ~ plan.run.run_id and told.who not in who -%}
    {%- for bucket in told.buckets or [] if bucket in mine and told.who not in who -%}{%- do who.append(told.who) -%}{%- endfor -%}
  {%- endfor -%}
  {%- do return(who | join(' or ') or 'another writer') -%}
{%- endmacro %}

{% macro snowflake__backfill_begin_again() -%}
  {#- what is written down after it commits by itself -#}
  {%- do backfill_run('ROLLBACK') -%}
{%- endmacro %}

{% macro snowflake__backfill_refused(plan) -%}{%- do backfill_leave(plan) -%}{%- endmacro %}

{% macro snowflake__backfill_leave(plan) -%}
  {%- set before = plan.pace.get('tag_before') -%}
  {%- do backfill_run('DROP TABLE IF EXISTS ' ~ plan.stage_relation) -%}
  {%- do backfill_run('ALTER SESSION UNSET ' ~ (backfill_spelled().unset | join(', ')) ~ ', LOCK_TIMEOUT' ~ (', STATEMENT_TIMEOUT_IN_SECONDS' if plan.run.statement_timeout else '') ~ ('' if before else ', QUERY_TAG')) -%}
  {%- if before -%}{%- do backfill_run('ALTER SESSION SET QUERY_TAG = ' ~ backfill_text(before)) -%}{%- endif -%}
{%- endmacro %}
