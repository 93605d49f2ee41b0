"""Adapters of the processors that the trainer runs on; all differences between them are in here."""
