"""Between bytes and Thrift structs."""
