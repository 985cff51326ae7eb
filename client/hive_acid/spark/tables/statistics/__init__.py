"""ANALYZE TABLE: what is counted of tables, partitions and columns."""
