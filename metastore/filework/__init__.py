"""File work of the server: with time limits, on threads of its own for each file system."""
