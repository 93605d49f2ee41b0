"""Devices other than processors and NVIDIA's GPUs."""
