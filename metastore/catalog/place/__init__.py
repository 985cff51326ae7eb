"""Where data lies, and whose it is."""
