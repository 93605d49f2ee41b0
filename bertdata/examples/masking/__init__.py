"""Masking of words: its settings, their form for one vocabulary, and the masking in pure Python.

Masks are drawn either when examples are written to files or when they are loaded.
"""
