"""Calls the package wikiextractor 3.1.0. This is the Python engine of the extractor "3.1.0"."""
