{#- Confirmed orders by the UTC day on which they were placed, with the customer as they were at that moment. -#}
{{ config(
    slice_column='order_date',
    slice_kind='date',
    time_zone='UTC',
    unique_key='order_id',
    schema_policy='add',
    source={
        'sql': "select * from raw.orders where status = 'confirmed'",
        'on': 'ordered_at',
        'ingested_at': 'loaded_at',
    },
    meta={'late_rows': 'report'},
) }}
select
  {{ day_of('orders.ordered_at') }} as order_date,
  orders.order_id,
  orders.ordered_at,
  orders.customer_id,
  orders.product_id,
  orders.quantity,
  cast(orders.quantity * products.unit_price as decimal(18, 2)) as amount
  {%- if var('with_country', true) %},
  customers.country
  {%- endif %}
from {{ ref('stg_orders') }} as orders
inner join {{ ref('stg_products') }} as products on products.product_id = orders.product_id
left join {{ ref('dim_customers') }} as customers
  on customers.customer_id = orders.customer_id
  -- as of the order, and never as of today
  and orders.ordered_at >= customers.dbt_valid_from
  and (orders.ordered_at < customers.dbt_valid_to or customers.dbt_valid_to is null)
where {{ in_slice('orders.ordered_at', kind='timestamptz') }}
