"""Changes of rows that are there: UPDATE, DELETE and MERGE."""
