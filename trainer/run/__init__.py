"""The loops: pre-training and evaluation, with their start points and checkpoints."""
