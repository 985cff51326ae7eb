"""Catalogs, databases, tables and views: created, altered, listed and dropped."""
