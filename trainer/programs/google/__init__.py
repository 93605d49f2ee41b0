"""Google's BERT in TensorFlow 1."""
