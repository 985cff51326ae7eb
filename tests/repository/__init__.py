"""What the repository itself must be: packages, deployment, methods, releases."""
