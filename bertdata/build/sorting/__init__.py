"""Sorting more than fits into memory: files of sorted runs between two steps of a run."""
