"""Extraction by byte ranges of a dump. Workers read different ranges, and the results are joined."""
