"""What one client may have of the server, so that the others have the rest."""
