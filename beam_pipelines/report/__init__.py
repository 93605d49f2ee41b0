"""Metrics, progress, log and errors of a run."""
