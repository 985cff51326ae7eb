"""Work in the background that keeps transactions and their tables in order (transactions.md §5)."""
