"""Benchmarks that compare this project with other programs, measured in the same run (``make bench``)."""
