"""Packages around the core, each found by name when it is asked for (trainer.registry)."""
