"""Masks that are drawn when examples are loaded. They depend only on the seed, the epoch and the example."""
