"""Counters, progress, logs and errors of a run."""
