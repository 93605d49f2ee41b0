"""The command line ``bertdata``: one module per command, and ``main``, which runs the command that the user
typed.
"""
