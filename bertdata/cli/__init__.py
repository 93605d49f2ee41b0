"""The command line: one module a command, ``main`` to choose among them."""
