"""Who carries compactions out."""
