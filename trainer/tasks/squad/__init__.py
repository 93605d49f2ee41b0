"""Answers found in a text (SQuAD): reading, features, predictions and metrics. Needs NumPy, not torch."""
