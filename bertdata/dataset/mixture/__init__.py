"""Mixtures: datasets whose examples alternate in proportion to their weights."""
