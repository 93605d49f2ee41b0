"""ModernBERT's loader: examples in its order, packed into rows, masked, in batches under its names."""
