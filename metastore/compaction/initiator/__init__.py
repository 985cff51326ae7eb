"""Who finds what needs a compaction, and queues it."""
