"""Translation of other programs' command lines to this trainer's configuration.

A TOML file describes each program. Only the command ``like`` imports this package.
"""
