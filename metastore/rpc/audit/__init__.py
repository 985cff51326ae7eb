"""What is written down of calls: who has changed what, and who was refused."""
