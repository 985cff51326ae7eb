"""Stories of the catalogue: databases, tables and what they have."""
