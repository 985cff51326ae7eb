"""Whole tables and whole files: made from queries, loaded, emptied, moved in and out, converted, counted."""
