"""Loaders that reproduce other programs' batches bit for bit: their order, packing and masks."""
