"""Everything that a run reports: metrics, progress, log messages and errors."""
