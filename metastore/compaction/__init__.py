"""Background compaction: the queue, who fills it (Initiator), who works it off (Worker), who cleans up (Cleaner)."""
