"""The steps as functions: the package offers them, and the command line calls them."""
