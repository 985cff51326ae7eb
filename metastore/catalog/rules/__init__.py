"""What a definition must be, and may become."""
