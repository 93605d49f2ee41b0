"""Properties and mappings of characters in Unicode 11.0, the version in Python 3.7.

Results are therefore the same in every version of Python.
"""
