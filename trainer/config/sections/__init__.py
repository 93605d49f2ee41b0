"""The configuration's sections.

Each key is a field of a section, with its type, default, range and help text.
"""
