"""The metastore as a process: its command, settings, data directory, services on a schedule, and what surrounds it."""
