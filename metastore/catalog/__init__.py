"""Databases, tables and partitions, and their directories."""
