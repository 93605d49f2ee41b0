"""Sizes and md5s that others published, one table a file."""
