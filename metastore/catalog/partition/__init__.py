"""Partitions: read, added, altered, dropped, moved; and the two languages in which clients choose them."""
