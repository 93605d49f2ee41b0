"""The sections of a dataset's report.

A function per section turns the datasets' numbers into the section, or None.
"""
