"""Loaders of other programs, to the bit: their order, packing and masks over a dataset's examples."""
