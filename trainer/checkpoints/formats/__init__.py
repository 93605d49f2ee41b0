"""Formats in which other programs store checkpoints, with a module for each format."""
