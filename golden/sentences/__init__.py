"""Sentences as releases of nltk split them."""
