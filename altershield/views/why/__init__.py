"""Why something is as it is, and what to do."""
