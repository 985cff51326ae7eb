"""ORC files: their tails, statistics and stripes, read and written without a library of ORC."""
