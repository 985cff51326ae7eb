"""Statistics of columns: stored, merged, aggregated, and vouched for only when they are exact for the reader."""
