"""ELECTRA's objective: unmasked examples of one or two segments, whose ids a model tells from replaced ones."""
