"""MLPerf's reference programs for BERT (TensorFlow)."""
