{#- Customers as they were each night, a day apiece and kept: what raw.customers cannot tell afterwards. -#}
{{ config(
    slice_column='snapshot_date',
    slice_kind='date',
    unique_key=['snapshot_date', 'customer_id'],
    meta={'source_history': 'snapshot'},
) }}
select
  nights.snapshot_date,
  customers.customer_id,
  customers.country,
  customers.segment,
  customers.updated_at
from {{ source('raw', 'customers') }} as customers
cross join (select cast('{{ var("start", "1970-01-01") }}' as date) as snapshot_date) as nights
where {{ in_slice('nights.snapshot_date', kind='date') }}
