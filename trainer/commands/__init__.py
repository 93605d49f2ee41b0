"""The commands of ``python -m trainer``, a module each."""
