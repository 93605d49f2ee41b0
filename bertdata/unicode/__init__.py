"""Unicode 11.0 as in Python 3.7, whatever Python runs. ``characters`` has the public functions."""
