"""Command lines of other programs with the meaning that they have there: a TOML file for each program.

The trainer's own commands never import this package.
"""
