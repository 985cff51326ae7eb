"""RPCs of the catalogue."""
