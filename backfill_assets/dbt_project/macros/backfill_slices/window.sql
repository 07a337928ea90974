{# The window of an invocation, its days, and the one spelling of "belongs to this day". #}

{% macro in_slice(column, kind='timestamptz', zone='UTC') -%}
  {#- the condition on the source's column; the materialization narrows it to one day after the other -#}
  {%- if kind not in ('date', 'timestamp', 'timestamptz', 'int_yyyymmdd', 'iso_text') or '*/' in column -%}
    {%- do exceptions.raise_compiler_error("in_slice('" ~ column ~ "') cannot be written: the kind '" ~ kind ~ "' cannot be compared safely with a window. Give date, timestamp, timestamptz, int_yyyymmdd or iso_text.") -%}
  {%- endif -%}
  {%- set condition = '1 = 1' -%}
  {%- if execute -%}
    {%- if model is defined and model.resource_type in ('model', 'snapshot') and model.config.materialized in ('view', 'table', 'materialized_view', 'snapshot') -%}
      {#- one window would stay in it for good, and models over it would see no other day -#}
      {%- do exceptions.raise_compiler_error(model.name ~ " was left as it was: it says in_slice(), and its materialization '" ~ model.config.materialized ~ "' would keep one window for good. Materialize it as backfill_slices or ephemeral, or filter in the model that reads it.") -%}
    {%- endif -%}
    {%- set ends = backfill_ends(model.name if model is defined else 'the query', zone) -%}
    {%- set condition = backfill_between(column, kind, zone, ends[0], ends[1]) -%}
  {%- endif -%}
  /*backfill {{ tojson({'column': column, 'kind': kind, 'zone': zone}, sort_keys=true) }}*/({{ condition }})/*backfill*/
{%- endmacro %}

{% macro day_of(column, zone='UTC') -%}
  {#- the day of an instant in a zone, which each warehouse spells its own way -#}
  {%- if execute -%}
  {{- backfill_spelled().day_of_instant.replace('{column}', column).replace('{zone}', backfill_text(zone)) -}}
  {%- endif -%}
{%- endmacro %}

{% macro backfill_between(column, kind, zone, start, end) -%}
  {%- do return(column ~ ' >= ' ~ backfill_bound(kind, zone, start) ~ ' AND ' ~ column ~ ' < ' ~ backfill_bound(kind, zone, end)) -%}
{%- endmacro %}

{% macro backfill_bound(kind, zone, instant) -%}
  {#- one end of a window as the typed literal that the column needs -#}
  {%- set literal = backfill_spelled().literals[kind] -%}
  {%- if kind == 'timestamptz' -%}{%- do return(literal.format(instant.isoformat(' '))) -%}{%- endif -%}
  {%- set local = instant.astimezone(modules.pytz.timezone(zone)) -%}
  {%- if kind == 'timestamp' -%}{%- do return(literal.format(local.replace(tzinfo=none).isoformat(' '))) -%}{%- endif -%}
  {%- do return(literal.format(local.strftime('%Y%m%d' if kind == 'int_yyyymmdd' else '%Y-%m-%d'))) -%}
{%- endmacro %}

{% macro backfill_narrowed(sql, start, end) -%}
  {#- the model's SQL for one day: every in_slice() of it, also of its ephemeral parents -#}
  {%- set found = namespace(sql='') -%}
  {%- set parts = sql.split('/*backfill*/') -%}
  {%- for part in parts -%}
    {%- if '/*backfill {' in part -%}
      {%- set before = part.split('/*backfill {')[0] -%}
      {%- set told = fromjson('{' ~ part.split('/*backfill {')[1].split('*/')[0]) -%}
      {%- set found.sql = found.sql ~ before ~ '(' ~ backfill_between(told.column, told.kind, told.zone, start, end) ~ ')' -%}
    {%- else -%}
      {%- set found.sql = found.sql ~ part -%}
    {%- endif -%}
  {%- endfor -%}
  {%- do return(found.sql) -%}
{%- endmacro %}

{% macro backfill_ends(what, zone) -%}
  {#- the vars start and end as instants: midnights of the zone, the end excluded -#}
  {%- set found = [] -%}
  {%- for name in ('start', 'end') -%}
    {%- set given = var(name, none) -%}
    {%- if given is none -%}
      {%- do exceptions.raise_compiler_error(what ~ " was left as it was: the var '" ~ name ~ "' is missing, and without both ends nobody can say which days to replace. Run dbt with --vars '{start: 2026-05-01, end: 2026-06-01}'; the end is excluded.") -%}
    {%- endif -%}
    {%- if not modules.re.match('^[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])$', given | string) -%}
      {%- do exceptions.raise_compiler_error(what ~ " was left as it was: the var '" ~ name ~ "' is '" ~ given ~ "', which is no day. Write it as YYYY-MM-DD.") -%}
    {%- endif -%}
    {%- do found.append(backfill_midnight(given | string, zone)) -%}
  {%- endfor -%}
  {%- if found[0] >= found[1] -%}
    {%- do exceptions.raise_compiler_error(what ~ " was left as it was: the window from " ~ var('start') ~ " to " ~ var('end') ~ " holds no day, since its end is excluded. Give an end after the start.") -%}
  {%- endif -%}
  {%- do return(found) -%}
{%- endmacro %}

{% macro backfill_midnight(day, zone) -%}
  {%- set tz = modules.pytz.timezone(zone) -%}
  {#- where midnight is skipped, the day begins an hour later, and with the first one where it comes twice -#}
  {%- set midnight = modules.datetime.datetime.strptime(day, '%Y-%m-%d') -%}
  {%- set ends = [tz.localize(midnight, is_dst=true), tz.localize(midnight, is_dst=false)] -%}
  {%- set found = tz.normalize(ends | min) -%}
  {%- do return((found if found.replace(tzinfo=none) == midnight else tz.normalize(ends | max)).astimezone(modules.pytz.utc)) -%}
{%- endmacro %}

{% macro backfill_days(what, zone) -%}
  {#- the slices of the window: name, start and end (UTC), and the UTC days that each touches -#}
  {%- set ends = backfill_ends(what, zone) -%}
  {%- set first = modules.datetime.datetime.strptime(var('start') | string, '%Y-%m-%d').date() -%}
  {%- set last = modules.datetime.datetime.strptime(var('end') | string, '%Y-%m-%d').date() -%}
  {%- set wanted = var('only_days', none) -%}
  {#- where models have other days left, each has its own -#}
  {%- if wanted is mapping -%}
    {%- if what not in wanted -%}
      {%- do exceptions.raise_compiler_error(what ~ " was left as it was: the var 'only_days' names the days of " ~ (wanted.keys() | join(', ')) ~ ' alone. Add its own, which may be [], or leave the model out of --select.') -%}
    {%- endif -%}
    {%- set wanted = wanted[what] -%}
  {%- endif -%}
  {%- if wanted is not none -%}
    {%- if wanted is string or wanted is not iterable -%}
      {%- do exceptions.raise_compiler_error(what ~ " was left as it was: the var 'only_days' is '" ~ wanted ~ "', which is no list. Write it as [" ~ (wanted if wanted is string else '2026-05-01') ~ '].') -%}
    {%- endif -%}
    {%- for day in wanted -%}
      {%- if not modules.re.match('^[0-9]{4}-[0-9]{2}-[0-9]{2}$', day | string) or (day | string) < (first | string) or (day | string) >= (last | string) -%}
        {%- do exceptions.raise_compiler_error(what ~ " was left as it was: the var 'only_days' names '" ~ day ~ "', which is no day of the window from " ~ first ~ ' to ' ~ last ~ '. Name days of the window as YYYY-MM-DD; its end is excluded.') -%}
      {%- endif -%}
    {%- endfor -%}
  {%- endif -%}
  {%- set found = [] -%}
  {%- for number in range((last - first).days) -%}
    {%- set day = first + modules.datetime.timedelta(days=number) -%}
    {%- if wanted is none or (day | string) in (wanted | map('string') | list) -%}
      {%- set start = backfill_midnight(day | string, zone) -%}
      {%- set end = backfill_midnight((day + modules.datetime.timedelta(days=1)) | string, zone) -%}
      {%- set utc = [] -%}
      {%- set last_utc = (end - modules.datetime.timedelta(microseconds=1)).date() -%}
      {%- for n in range((last_utc - start.date()).days + 1) -%}
        {%- do utc.append((start.date() + modules.datetime.timedelta(days=n))) -%}
      {%- endfor -%}
      {%- do found.append({'name': day | string, 'start': start, 'end': end, 'utc_days': utc}) -%}
    {%- endif -%}
  {%- endfor -%}
  {%- do return(found) -%}
{%- endmacro %}
