"""Settings and zones under which sessions of users run, and the story that is told in each."""
