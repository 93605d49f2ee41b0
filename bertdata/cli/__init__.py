"""The command line ``bertdata``.

There is one module for each command, and ``main``, which runs the command that the user typed.
"""
