"""The sections of a dataset's report.

Each module has a function that makes a section from the datasets' numbers. It returns None if there is
nothing to show.
"""
