"""Bytes on their way between stages and machines."""
