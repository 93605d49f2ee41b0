"""Adapters for the processors that the trainer runs on: CPU, CUDA, Gaudi (hpu), IPU and TPU (xla).

Everything in the trainer that differs between these devices is in this package.
"""
