"""Thrift calls over sockets: framing, encoding, one wrapper round every call, and the handlers."""
