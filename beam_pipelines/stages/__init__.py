"""The pipeline's labelled stages."""
