"""SQL over ACID tables: what `acid.sql` understands. Each family of statements has a file in `statements`."""
