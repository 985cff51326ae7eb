"""What policies of compaction cost on recorded workloads, without any files: readings, rewriting, the worst reader."""
