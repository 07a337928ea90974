select
  order_id,
  customer_id,
  product_id,
  ordered_at,
  quantity,
  loaded_at
from {{ source('raw', 'orders') }}
where status = 'confirmed'
