{# How staged columns meet the table's: by name, by the declared policy, and never rounded or retyped silently. #}

{% macro backfill_columns(relation, at) -%}
  {#- [[name, type], ...] in order; empty when it is not there -#}
  {%- do return(adapter.dispatch('backfill_columns')(relation, at)) -%}
{%- endmacro %}

{% macro duckdb__backfill_columns(relation, at) -%}
  {%- set spelled = backfill_spelled() -%}
  {%- set where = backfill_filled(spelled.there, {'schema': backfill_text(at.schema)}) if at.schema else spelled.staged -%}
  {%- do return(backfill_fetch(backfill_filled(spelled.columns_of, {'name': backfill_text(at.name), 'where': where}))) -%}
{%- endmacro %}

{% macro postgres__backfill_columns(relation, at) -%}
  {%- set relation = relation if at.schema else 'pg_temp.' ~ relation -%}
  {%- do return(backfill_fetch(backfill_filled(backfill_spelled().columns_of, {'relation': relation.replace("'", "''")}))) -%}
{%- endmacro %}

{% macro backfill_folded(name) -%}
  {%- do return(name if backfill_spelled().case_sensitive else name | lower) -%}
{%- endmacro %}

{% macro backfill_family(kind) -%}
  {%- set bare = modules.re.sub('\s*\([^)]*\)', '', kind) | lower -%}
  {%- if bare in ('smallint', 'integer', 'int', 'bigint', 'tinyint', 'hugeint', 'usmallint', 'uinteger', 'ubigint', 'utinyint', 'numeric', 'decimal', 'number', 'real', 'float', 'double', 'double precision') -%}{%- do return('number') -%}{%- endif -%}
  {%- if bare in ('text', 'varchar', 'character varying', 'character', 'char', 'string', 'bpchar') -%}{%- do return('text') -%}{%- endif -%}
  {%- do return(bare) -%}
{%- endmacro %}

{% macro backfill_fit(plan, slice) -%}
  {#- names, values and types in the table's order; the table is made or widened where that is declared -#}
  {%- set staged, there = backfill_columns(plan.stage_relation, {'name': plan.stage}), backfill_columns(plan.relation, plan) -%}
  {%- if not there -%}
    {%- set listed = [] -%}
    {%- for column in staged -%}{%- do listed.append(backfill_quoted(column[0]) ~ ' ' ~ column[1]) -%}{%- endfor -%}
    {%- do plan.pace.ddl.append(backfill_filled(backfill_spelled().create_schema, {'schema': backfill_quoted(plan.schema)})) -%}
    {%- do plan.pace.ddl.append('CREATE TABLE IF NOT EXISTS ' ~ plan.relation ~ ' (' ~ (listed | join(', ')) ~ ')') -%}
    {%- set there = staged -%}
  {%- endif -%}
  {%- set by_key, wanted, new, missing = {}, {}, [], [] -%}
  {%- for column in staged -%}{%- do by_key.update({backfill_folded(column[0]): column}) -%}{%- endfor -%}
  {%- for column in there -%}{%- do wanted.update({backfill_folded(column[0]): column}) -%}{%- endfor -%}
  {%- for key in [plan.column] + plan.key_columns -%}
    {%- if backfill_folded(key) not in by_key and backfill_stored(key) not in by_key -%}
      {%- do backfill_refuse(plan, slice, 'SchemaMismatch', "the rows have no column '" ~ key ~ "'", 'Return that column, or correct slice_column or unique_key') -%}
    {%- endif -%}
  {%- endfor -%}
  {%- for column in staged if backfill_folded(column[0]) not in wanted -%}{%- do new.append(column) -%}{%- endfor -%}
  {%- for column in there if backfill_folded(column[0]) not in by_key -%}{%- do missing.append(column) -%}{%- endfor -%}
  {%- if plan.policy == 'fail' and (new or missing) -%}
    {%- set told = [] -%}
    {%- for column in new -%}{%- do told.append("the rows bring '" ~ column[0] ~ "' (" ~ column[1] ~ "), which the table has not") -%}{%- endfor -%}
    {%- for column in missing -%}{%- do told.append("the table has '" ~ column[0] ~ "' (" ~ column[1] ~ "), which the rows lack") -%}{%- endfor -%}
    {%- do backfill_refuse(plan, slice, 'SchemaMismatch', told | join(' and '), "Correct the rows, or declare schema_policy='add' (add new, fill missing) or 'ignore' (leave out, fill missing)") -%}
  {%- endif -%}
  {%- set pairs = [] -%}
  {%- for column in there if backfill_folded(column[0]) in by_key -%}
    {%- do pairs.append([column[0], by_key[backfill_folded(column[0])], column[1]]) -%}
  {%- endfor -%}
  {%- if plan.policy == 'add' -%}
    {%- for column in new -%}
      {%- do plan.pace.ddl.append('ALTER TABLE ' ~ plan.relation ~ ' ADD COLUMN IF NOT EXISTS ' ~ backfill_quoted(column[0]) ~ ' ' ~ column[1]) -%}
      {%- do pairs.append([column[0], column, column[1]]) -%}
    {%- endfor -%}
  {%- endif -%}
  {%- set fit = {'names': [], 'values': [], 'types': [], 'lossy': []} -%}
  {%- for name, source, kind in pairs -%}
    {%- do fit.names.append(backfill_quoted(name)) -%}
    {%- do fit.types.append(kind) -%}
    {%- if source[1] == kind -%}
      {%- do fit['values'].append(backfill_quoted(source[0])) -%}
    {%- else -%}
      {%- if backfill_family(source[1]) != backfill_family(kind) -%}
        {%- do backfill_refuse(plan, slice, 'SchemaMismatch', "column '" ~ name ~ "' holds " ~ kind ~ ' and the rows bring ' ~ source[1] ~ ', which would have to be reinterpreted', 'Convert the column to ' ~ kind ~ ' in the model, where it is said how') -%}
      {%- endif -%}
      {%- do fit['values'].append('CAST(' ~ backfill_quoted(source[0]) ~ ' AS ' ~ kind ~ ')') -%}
      {%- do fit.lossy.append([name, source[1], kind, 'CAST(CAST(' ~ backfill_quoted(source[0]) ~ ' AS ' ~ kind ~ ') AS ' ~ source[1] ~ ') IS DISTINCT FROM ' ~ backfill_quoted(source[0])]) -%}
    {%- endif -%}
  {%- endfor -%}
  {%- do return(fit) -%}
{%- endmacro %}

{% macro backfill_checksum(fit) -%}
  {#- the order-independent sum of row hashes, the same as writing/measure.py's -#}
  {%- set spelled, columns = backfill_spelled(), [] -%}
  {%- for name in fit.names -%}
    {%- set kind = modules.re.sub('\s*\([^)]*\)', '', fit.types[loop.index0]) | lower -%}
    {%- set template = spelled.column_hash.get(kind, spelled.column_hash['']) -%}
    {%- do columns.append(template.replace('{column}', name).replace('{place}', loop.index | string)) -%}
  {%- endfor -%}
  {%- do return(spelled.hash_sum.replace('{hash}', spelled.row_hash.replace('{columns}', columns | join(spelled.hash_joint)))) -%}
{%- endmacro %}
