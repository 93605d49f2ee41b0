"""A run's progress and logs."""
