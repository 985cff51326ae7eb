"""Java's HiveMetaStoreClient of several releases, in JVMs of their own."""
