"""A transaction from its opening to its end, on every path."""
