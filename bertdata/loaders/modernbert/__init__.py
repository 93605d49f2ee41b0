"""ModernBERT's data loader: the same order of examples, packed rows, masks and batch keys."""
