"""Locks and waiting for them (transactions.md §3)."""
