"""Recipes and dialects as data, and the checking of values."""
