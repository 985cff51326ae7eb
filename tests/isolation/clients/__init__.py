"""Clients of a run, of each kind, and what they are to do."""
