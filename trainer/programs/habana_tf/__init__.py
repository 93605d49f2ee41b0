"""Habana's BERT programs for TensorFlow."""
