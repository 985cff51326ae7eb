"""What is known of all rows of a table without reading them."""
