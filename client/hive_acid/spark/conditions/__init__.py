"""Conditions: what users say of rows, as trees, as predicates on columns, and as what ORC skips by."""
