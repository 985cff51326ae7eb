"""Servers, Postgres and the network between, with every trouble."""
