"""ModernBERT's data loader: it gives the same order of examples, packed rows, masks and names in a batch."""
