"""The page about a run, and the facts that are read for it from the run's directory."""
