"""Statements with the metastore's tables taken out of them: what Spark is given instead, and what is read for it."""
