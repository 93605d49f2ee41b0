"""Masked words, in files and at load time: settings, rules for a vocabulary, and the pure-Python version."""
