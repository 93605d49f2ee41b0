"""Graphcore's programs for BERT in TensorFlow 1."""
