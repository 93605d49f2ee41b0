"""Answers found in a text (SQuAD): reading, features, predictions and metrics; needs NumPy, not torch."""
