"""Habana's programs for TensorFlow."""
