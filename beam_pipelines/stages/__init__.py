"""The labelled stages of the pipelines."""
