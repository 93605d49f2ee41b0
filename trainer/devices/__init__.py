"""Adapters of the processors that the trainer runs on. All differences between them are in here."""
