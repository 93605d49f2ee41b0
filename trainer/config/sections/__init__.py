"""The sections of the configuration: each key is a field of one, with type, default, range and meaning."""
