"""Google's programs for BERT (TensorFlow)."""
