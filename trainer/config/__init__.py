"""The configuration: keys, flags and shipped files."""
