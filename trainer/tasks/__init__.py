"""The learning tasks: their losses and metrics."""
