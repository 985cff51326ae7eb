"""What the daemon tells about itself: structured log lines and counters of calls."""
