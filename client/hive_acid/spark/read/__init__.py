"""From the directories of a snapshot to the rows of a frame."""
