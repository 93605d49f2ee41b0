"""Examples in training: their order, batches of them, and random ones where there is no dataset."""
