"""File sizes and md5s published by the makers of data sets, one table per file."""
