{% snapshot order_history %}
{{ config(target_schema='shop', unique_key='id', strategy='check', check_cols=['customer', 'total']) }}
select id, customer, total from {{ ref('raw_orders') }}
{% endsnapshot %}
