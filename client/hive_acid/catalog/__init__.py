"""Tables as the client sees them, without Thrift, and how they are altered."""
