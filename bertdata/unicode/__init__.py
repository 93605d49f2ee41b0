"""Unicode 11.0, so that results equal Python 3.7's in any Python. See ``characters`` for the functions."""
