"""Schema migrations of the metastore, linear, run by `metastore.store.schema.migrate`."""
