"""The verbs of a session and of its frames."""
