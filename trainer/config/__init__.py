"""The trainer's configuration: keys, flags, help, and shipped configuration files."""
