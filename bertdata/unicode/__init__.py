"""Properties of characters and conversions of text by Unicode 11.0, the version in Python 3.7.

The results are therefore the same in every version of Python.
"""
