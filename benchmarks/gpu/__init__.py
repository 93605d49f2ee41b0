"""Stages that prove the trainer on a GPU and measure it: ``make gpu``, or ``python -m benchmarks.gpu``."""
