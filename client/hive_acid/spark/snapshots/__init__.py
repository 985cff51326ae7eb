"""Who keeps a snapshot: transactions around the verbs, and leases of frames on files."""
