"""What is made, altered and dropped: databases, tables with their clauses and constraints, views."""
