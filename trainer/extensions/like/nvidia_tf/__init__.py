"""NVIDIA's programs for TensorFlow."""
