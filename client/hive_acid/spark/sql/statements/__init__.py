"""One file for each family of statements, and `dispatch`, which tells them apart."""
