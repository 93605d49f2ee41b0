"""Extraction by byte ranges of a dump, each read by another worker, and the joining of the results."""
