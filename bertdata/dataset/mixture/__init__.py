"""Mixtures: several datasets read as one, whose examples take turns in proportion to weights."""
