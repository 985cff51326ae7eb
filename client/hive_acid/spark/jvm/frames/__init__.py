"""Idioms with Spark's frames: rows that are kept, counted, projected and fetched."""
