"""The sections of the report about a dataset.

Each module has a function that makes a section from the numbers of the datasets. The function returns None if
there is nothing to show.
"""
