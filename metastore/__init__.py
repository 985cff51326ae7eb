"""The hive-acid metastore: a daemon that speaks ThriftHiveMetastore over a Postgres of its own."""

__version__ = "0.1.0"
