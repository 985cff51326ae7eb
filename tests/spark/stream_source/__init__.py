"""Tables as sources of streams."""
