"""Labelled stages of the pipelines."""
