"""What ORC itself is asked of a predicate: of row groups, and of rows."""
