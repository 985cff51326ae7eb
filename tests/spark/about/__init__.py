"""What is told about a table: its writes, its files and its partitions."""
