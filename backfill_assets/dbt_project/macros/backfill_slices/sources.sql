{# Sources that are changed in place: what they said on an old day is gone, unless their states are kept. #}

{% macro backfill_changing_sources() -%}
  {#- every such source that the model reads today's state of: [name, days that it may be trusted] -#}
  {%- set found = {} -%}
  {%- if config.get('source_history') in ('snapshot', 'cdc') -%}{%- do return([]) -%}{%- endif -%}
  {%- set open = namespace(nodes=model.depends_on.nodes | list, seen=[]) -%}
  {#- each node is opened once, and brings its parents: no more rounds than the project has edges -#}
  {%- set rounds = namespace(count=open.nodes | length) -%}
  {%- for node in graph.nodes.values() -%}{%- set rounds.count = rounds.count + (node.get('depends_on', {}).get('nodes', []) | length) -%}{%- endfor -%}
  {%- for _ in range(rounds.count) if open.nodes -%}
    {%- set uid = open.nodes[0] -%}
    {%- set open.nodes = open.nodes[1:] -%}
    {%- if uid not in open.seen -%}
      {%- do open.seen.append(uid) -%}
      {%- if uid in graph.sources -%}
        {%- set meta = backfill_meta(graph.sources[uid]) -%}
        {%- if meta.get('source_mutable') and meta.get('source_history') not in ('snapshot', 'cdc') -%}
          {%- do found.update({graph.sources[uid].source_name ~ '.' ~ graph.sources[uid].name: meta.get('source_days')}) -%}
        {%- endif -%}
      {%- elif uid in graph.nodes -%}
        {%- set node = graph.nodes[uid] -%}
        {#- a snapshot keeps the old states, and a model may say that it does -#}
        {%- if node.resource_type != 'snapshot' and backfill_meta(node).get('source_history') not in ('snapshot', 'cdc') -%}
          {%- set open.nodes = open.nodes + (node.depends_on.nodes | list) -%}
        {%- endif -%}
      {%- endif -%}
    {%- endif -%}
  {%- endfor -%}
  {%- do return(found.items() | list) -%}
{%- endmacro %}

{% macro backfill_meta(node) -%}
  {%- set found = {} -%}
  {%- do found.update(node.get('meta') or {}) -%}
  {%- do found.update((node.get('config') or {}).get('meta') or {}) -%}
  {%- do return(found) -%}
{%- endmacro %}

{% macro backfill_refuse_changed_source(plan, slice, lane, now) -%}
  {%- if 'retention' in plan.run.allows -%}{%- do return(none) -%}{%- endif -%}
  {%- for name, given in plan.sources -%}
    {#- what is live is loaded from the state of the day, which is the one to be had -#}
    {%- set days = given if given is not none else (0 if lane == 'backfill' else none) -%}
    {%- if days is not none and slice.end <= now - modules.datetime.timedelta(days=days | int) -%}
      {%- do backfill_refuse(plan, slice, 'Refused',
          "its source " ~ name ~ " is changed in place and trusted for " ~ days ~ " days, and the window ended " ~ (now - slice.end).days ~ " days ago",
          "Read a snapshot or change history of it instead (meta source_history: snapshot or cdc), or run with the vars allow: retention and reason") -%}
    {%- endif -%}
  {%- endfor -%}
{%- endmacro %}

{% macro backfill_refuse_second_copy(plan, slice, now, before) -%}
  {#- in either lane: an ended day has its copy, and what the source says now belongs to another one -#}
  {%- if before.loaded and slice.end <= now and 'retention' not in plan.run.allows -%}
    {%- for name, given in plan.sources if given is none -%}
      {%- do backfill_refuse(plan, slice, 'Refused', 'it was loaded before and has ended, and its source ' ~ name ~ ' is changed in place, so that this would write the state of another day over it',
          'Read a snapshot or change history of it instead (meta source_history: snapshot or cdc), say for how many days it may be trusted (meta source_days), or run with the vars allow: retention and reason') -%}
    {%- endfor -%}
  {%- endif -%}
{%- endmacro %}
