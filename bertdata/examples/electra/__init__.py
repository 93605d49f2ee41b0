"""ELECTRA's objective: unmasked examples of one or two segments, to find replaced ids in."""
