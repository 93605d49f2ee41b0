"""Tests and measurements of the trainer on a GPU (``make gpu`` or ``python -m benchmarks.gpu``)."""
