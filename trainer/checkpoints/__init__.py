"""Checkpoints of a run: written, read, resumed from."""
