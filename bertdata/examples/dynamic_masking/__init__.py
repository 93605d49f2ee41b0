"""Masks drawn when examples are loaded: a function of seed, epoch and example alone."""
