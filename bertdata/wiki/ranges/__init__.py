"""Ranges of a dump, each read and extracted by a worker of its own, and the fold that joins them."""
