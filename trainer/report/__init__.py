"""The report page about a run, and the facts that are read from the run's directory for it."""
