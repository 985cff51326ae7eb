"""What is told about a table beside its rows: its writes, its files, its partitions."""
