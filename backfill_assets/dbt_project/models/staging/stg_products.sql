select product_id, category, unit_price
from {{ source('raw', 'products') }}
