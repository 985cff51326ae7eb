"""Files of other times: those from before a conversion, deltas of Hive before version 3, columns as they once were."""
