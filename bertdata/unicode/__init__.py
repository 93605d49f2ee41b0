"""Unicode 11.0, the tables of Python 3.7, whatever Python runs: ``characters`` is the face of the tables."""
