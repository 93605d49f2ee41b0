"""Mixtures: examples of several datasets in given shares."""
