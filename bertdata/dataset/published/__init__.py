"""File sizes and md5s that the makers of data sets published. Each file is a table."""
