"""The page of a run, and what is read from its directory for it."""
