{{ config(materialized='incremental', incremental_strategy='merge', unique_key='id') }}

select id, customer, total, day from {{ ref('raw_orders') }}
{% if is_incremental() %} where day >= (select max(day) from {{ this }}) {% endif %}
