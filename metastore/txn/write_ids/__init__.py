"""Write ids: giving them out, and what a snapshot sees of them (transactions.md §2)."""
