"""hive-acid: Hive's ACID tables without Hive. This package is the client; the daemon is `metastore`."""

from hive_acid.connection import Connection, connect

__all__ = ["Connection", "connect"]
__version__ = "0.1.0"
