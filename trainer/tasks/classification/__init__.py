"""Texts and pairs of texts with a label or a score (GLUE and one's own). Needs NumPy, not torch."""
