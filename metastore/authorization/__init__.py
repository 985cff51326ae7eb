"""What users may do: one table of all methods (`methods`), checked before a call is served (`authority`)."""
