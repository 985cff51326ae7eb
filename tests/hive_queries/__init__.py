"""Hive's own query files, played by `acid.sql`: what is accepted, refused by whom, and which rows differ."""
