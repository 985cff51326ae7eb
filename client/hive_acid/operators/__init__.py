"""What operators ask of a metastore: SHOW, ABORT and COMPACT, reasons, orphans, removals."""
