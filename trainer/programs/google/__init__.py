"""Google's BERT programs for TensorFlow 1."""
