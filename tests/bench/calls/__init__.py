"""The calls of a metastore, measured: ours, another one's, and the floor of bare Postgres."""
