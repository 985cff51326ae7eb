"""A Postgres of our own, from its start to what a killed one leaves behind."""
