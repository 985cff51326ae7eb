"""Why something does not happen, and what to do: answers from what the services have put down and from what is open."""
