"""Conditions on values of every type: our skipping on and off, plain Spark and a model in Python have to agree."""
