"""ELECTRA's objective: unmasked examples of one or two segments, for detecting replaced tokens."""
