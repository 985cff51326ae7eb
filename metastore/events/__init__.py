"""The notification log: what changed, numbered in the order in which it became visible, for those who follow it."""
