"""Texts and pairs of texts with a label or a score."""
