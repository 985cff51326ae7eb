"""Tables as sources of streams: what writes have put into a table since the batch before, in Spark's own streams."""
