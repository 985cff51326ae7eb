"""Statements that define: tables, partitions, views and constraints."""
