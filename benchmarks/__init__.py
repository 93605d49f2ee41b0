"""Benchmarks: each figure beside that of its peer from the same run (``make bench``)."""
