"""What the daemon tells about itself: structured log lines, counters of calls and gauges."""
