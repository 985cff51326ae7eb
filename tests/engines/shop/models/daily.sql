{{ config(materialized='table') }}
select day, sum(total) as total, count(*) as orders from {{ ref('orders') }} group by day
