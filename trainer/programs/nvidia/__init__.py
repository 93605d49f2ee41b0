"""NVIDIA's BERT programs for PyTorch."""
