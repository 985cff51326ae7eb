"""Values, the conditions that ask for them, and how results are compared."""
