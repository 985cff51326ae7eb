"""Hot calls: many together on few connections."""
