"""Who may come in: where the server listens, and what a client has to show before its first call."""
