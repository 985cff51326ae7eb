"""How tables, partitions and rows go, and come back: drops, truncation, the trash, directories to be removed."""
