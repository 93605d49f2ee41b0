"""File sizes and md5s of data sets, as their makers published them. There is one table for each data set."""
