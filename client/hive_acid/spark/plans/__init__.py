"""Which way a statement takes, and why: pure functions of what is known and of the session's limits; no Spark here."""
