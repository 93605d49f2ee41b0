"""NVIDIA's programs for PyTorch."""
