"""NVIDIA's BERT programs for TensorFlow."""
