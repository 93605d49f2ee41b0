"""Adapters of the processors that the trainer runs on. Everything that differs between devices is in here."""
