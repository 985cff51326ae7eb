{{ config(materialized='view') }}
select * from {{ ref('orders') }} where day >= date'2026-11-02'
