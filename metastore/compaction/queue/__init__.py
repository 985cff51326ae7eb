"""The queue and the history of compactions."""
