"""Which partitions of a table are listed for a frame, and which a join reaches."""
