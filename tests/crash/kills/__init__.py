"""Writers that are killed at random moments, and the rows that must be there after each."""
