"""The steps as Python functions, which the package exports and the command line calls."""
