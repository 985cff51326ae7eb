"""Storage: the Postgres underneath, its connections, its schema and its stored functions."""
