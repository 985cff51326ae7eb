{# dbt-spark makes snapshots of three formats that it knows by name: ours goes by one of them, without its clauses. #}
{% macro spark__file_format_clause() %}{% endmacro %}
{% macro spark__options_clause() %}{% endmacro %}

{% macro get_or_create_relation(database, schema, identifier, type) %}
  {% set found, relation = dbt.get_or_create_relation(database, schema, identifier, type) %}
  {{ return([found, relation.incorporate(is_hudi=true)]) }}
{% endmacro %}
