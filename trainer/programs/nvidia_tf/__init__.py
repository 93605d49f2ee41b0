"""NVIDIA's BERT in TensorFlow."""
