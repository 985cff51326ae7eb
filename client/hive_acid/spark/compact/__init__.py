"""Compactions: what a job is told, what it reads and writes, and the processes that run jobs."""
