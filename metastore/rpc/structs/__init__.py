"""Between Thrift structs and the models of the catalogue."""
