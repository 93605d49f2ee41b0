"""Figures of speed, each beside its peer, measured in the same run: ``make bench``."""
