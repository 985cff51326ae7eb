"""Values on their way between frames and tables: types, casts, texts, hashes, the names of partitions."""
