"""Proof that the services can be killed anywhere: every step of each of them, found by watching, is a place to die."""
