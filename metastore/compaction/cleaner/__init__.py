"""Who removes what nobody can need any more."""
