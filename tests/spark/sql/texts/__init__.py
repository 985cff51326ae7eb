"""Texts of statements: their words, depth and variables, and what is broken in them."""
