"""Spark's JVM and the settings of its sessions: what a job needs, and what of a session cannot be used."""
