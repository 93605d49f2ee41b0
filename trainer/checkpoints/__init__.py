"""Checkpoints: writing them, reading them, resuming from them, and other programs' formats."""
