"""The command line ``bertdata``: one module per command, and ``main``, which runs the chosen one."""
