"""One module per area: Thrift structs in, service calls, Thrift structs out."""
