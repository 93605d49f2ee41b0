"""Command lines of other programs, translated to this trainer's configuration. Each program has a TOML file.

The trainer's other commands never import this package.
"""
