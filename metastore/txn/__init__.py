"""Transactions and write ids (transactions.md §1, §2)."""
