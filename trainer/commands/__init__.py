"""The commands of ``python -m trainer``, with a module for each command."""
