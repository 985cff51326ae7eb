"""From the rows of a frame to the files of a write; `hive_acid.write` makes them the table's."""
