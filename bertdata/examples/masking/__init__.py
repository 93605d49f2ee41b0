"""Masked words, in files and at load: the settings, their rules for a vocabulary, the readable twin."""
