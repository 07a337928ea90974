{# dbt's own tests of a model, asked of the rows of a day before they are committed. #}

{% macro backfill_rules() -%}
  {#- generic tests of the model that need no other table: name, severity, and what they are called with -#}
  {%- set found = [] -%}
  {%- for node in graph.nodes.values() if node.resource_type == 'test' and node.get('attached_node') == model.unique_id and node.get('test_metadata') -%}
    {%- set told = node.test_metadata -%}
    {%- set given = {} -%}
    {%- for key, value in told.kwargs.items() if key not in ('model', 'config') -%}{%- do given.update({key: value}) -%}{%- endfor -%}
    {%- set macro = ((told.namespace ~ '.') if told.namespace else '') ~ 'test_' ~ told.name -%}
    {#- what compares with another table is left to dbt, which runs it after the model -#}
    {%- set others = node.depends_on.nodes | reject('equalto', model.unique_id) | list -%}
    {%- if not others and '{' not in (tojson(given.values() | list)).replace('{}', '') -%}
      {%- do found.append({'name': node.name, 'macro': 'test_' ~ told.name, 'namespace': told.namespace, 'given': given,
          'severity': (node.config.get('severity') or 'ERROR') | lower, 'where': node.config.get('where'), 'limit': node.config.get('limit'),
          'fail_calc': node.config.get('fail_calc') or 'count(*)', 'error_if': node.config.get('error_if') or '!= 0', 'warn_if': node.config.get('warn_if') or '!= 0'}) -%}
    {%- endif -%}
  {%- endfor -%}
  {%- do return(found) -%}
{%- endmacro %}

{% macro backfill_rule_sql(rule, relation) -%}
  {%- set home = context[rule.namespace] if rule.namespace else context -%}
  {%- set rows = '(SELECT * FROM ' ~ relation ~ ' WHERE ' ~ render(rule['where']) ~ ') AS dbt_subquery' if rule['where'] else relation -%}
  {%- set found = home[rule.macro](model=rows, **rule.given) -%}
  {%- do return(found ~ ('\nLIMIT ' ~ rule.limit if rule.limit is not none else '')) -%}
{%- endmacro %}

{% macro backfill_findings(plan, slice, relation) -%}
  {#- [{rule, passed, found, severity}]: one statement for all of them, which counts and judges as dbt does afterwards -#}
  {%- if not plan.rules -%}{%- do return([]) -%}{%- endif -%}
  {%- set parts = [] -%}
  {%- for rule in plan.rules -%}
    {%- set failures = 'coalesce(' ~ rule.fail_calc ~ ', 0)' -%}
    {%- do parts.append('SELECT ' ~ loop.index0 ~ ' AS rule_number, ' ~ failures ~ ' AS failures, CASE WHEN ' ~ failures ~ ' ' ~ rule.error_if ~ ' THEN 1 ELSE 0 END AS should_error, CASE WHEN '
        ~ failures ~ ' ' ~ rule.warn_if ~ ' THEN 1 ELSE 0 END AS should_warn FROM (' ~ backfill_rule_sql(rule, relation) ~ '\n) AS failing_rows') -%}
  {%- endfor -%}
  {%- set found = [] -%}
  {%- for number, failures, should_error, should_warn in backfill_fetch(parts | join('\nUNION ALL ') ~ '\nORDER BY 1') -%}
    {%- set rule = plan.rules[number | int] -%}
    {%- set blocks = rule.severity == 'error' and (should_error | int) == 1 -%}
    {%- set passed = not blocks and (should_warn | int) == 0 -%}
    {%- do found.append({'rule': rule.name, 'about': 'rows', 'expected': 0, 'found': failures | int, 'may_differ': 0, 'passed': passed,
        'severity': 'block' if blocks or (passed and rule.severity == 'error') else 'warn', 'why': '' if passed else (failures ~ ' rows of the day fail it'),
        'allowed': ('rule:' ~ rule.name) in plan.run.allows}) -%}
  {%- endfor -%}
  {%- do return(found) -%}
{%- endmacro %}
