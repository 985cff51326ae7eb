"""The hive-acid metastore: a daemon that speaks ThriftHiveMetastore over a Postgres of its own."""
