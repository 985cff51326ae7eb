"""Connections to Postgres: where it is, how many there are, what their errors mean, and what became of a commit."""
