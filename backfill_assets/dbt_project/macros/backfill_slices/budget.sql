{# What a backfill may spend, asked of the audit before each day: while dbt runs, nobody outside may be able to look. #}

{% macro backfill_refuse_over_budget(plan, slice, now) -%}
  {#- the var `budget` is Dagster's: caps, whose spending counts, and the words of the refusal -#}
  {%- set budget = var('budget', {}).get(plan.label) -%}
  {%- if not budget -%}{%- do return(none) -%}{%- endif -%}
  {%- set found, helps = backfill_spent_up(plan, budget, budget.caps, '', now), [] -%}
  {%- if found -%}{%- do helps.append(budget.how) -%}{%- endif -%}
  {%- set of_table = backfill_spent_up(plan, budget, budget.table_caps, ' AND ' ~ backfill_names_in_audit(plan), now) -%}
  {%- for one in of_table -%}{%- do found.append(one ~ ' on ' ~ plan.label) -%}{%- endfor -%}
  {%- if of_table -%}{%- do helps.append(budget.how_table) -%}{%- endif -%}
  {%- if found -%}
    {#- no attempt at the day was made, so that the audit has no row of one -#}
    {%- do backfill_wrong(plan.label ~ ' ' ~ slice.name, budget.used_up ~ (found | join(', ')), (helps | join(' and ')) ~ ', then launch the rest') -%}
  {%- endif -%}
{%- endmacro %}

{% macro backfill_spent_up(plan, budget, caps, more, now) -%}
  {#- each cap that is reached, in words -#}
  {%- set found = [] -%}
  {%- if caps.seconds is defined or caps.rows is defined or caps.cost is defined -%}
    {%- set audit, ids = backfill_spelled().audit, [] -%}
    {%- for one in budget.ids -%}{%- do ids.append(backfill_text(one)) -%}{%- endfor -%}
    {%- set wrote = "CASE WHEN " ~ backfill_quoted('outcome') ~ " = 'committed' THEN " ~ backfill_quoted('rows_after') ~ " END" -%}
    {%- set sums = [] -%}
    {%- for value in (backfill_quoted('seconds'), wrote, backfill_quoted('cost')) -%}{%- do sums.append('coalesce(sum(' ~ value ~ '), 0)') -%}{%- endfor -%}
    {%- set spent = backfill_fetch('SELECT ' ~ (sums | join(', ')) ~ ' FROM ' ~ backfill_filled(audit.relation, backfill_audit_words(plan.run))
        ~ ' WHERE ' ~ backfill_quoted(budget['of']) ~ ' IN (' ~ (ids | join(', ')) ~ ')' ~ more)[0] -%}
    {%- for name, what in (('seconds', 'warehouse seconds'), ('rows', 'rows'), ('cost', 'cost')) -%}
      {%- if name in caps and (spent[loop.index0] | float) >= (caps[name] | float) -%}
        {%- do found.append('%g of %g %s are spent' | format(spent[loop.index0] | float, caps[name] | float, what)) -%}
      {%- endif -%}
    {%- endfor -%}
  {%- endif -%}
  {%- if 'deadline' in caps and now >= modules.datetime.datetime.fromisoformat(caps.deadline) -%}
    {%- do found.append('the deadline ' ~ modules.datetime.datetime.fromisoformat(caps.deadline).isoformat(timespec='minutes') ~ ' has passed') -%}
  {%- endif -%}
  {%- do return(found) -%}
{%- endmacro %}
