{% snapshot dim_customers %}
{# type 2: one row for each state that a customer was in, kept for good. Run it every night, before the facts. #}
{{ config(
    schema='analytics',
    unique_key='customer_id',
    strategy='timestamp',
    updated_at='updated_at',
    hard_deletes='invalidate',
) }}
select customer_id, country, segment, updated_at
from {{ source('raw', 'customers') }}
{% endsnapshot %}
