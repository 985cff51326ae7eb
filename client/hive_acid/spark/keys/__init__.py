"""Primary keys that are enforced: rows of the same key are looked for in what was written and in what is there."""
