"""Benchmarks that compare this project with other programs, each pair measured in the same run (``make
bench``).
"""
