"""What runs in processes that are killed: servers, their services, and the Spark program of a compaction."""
