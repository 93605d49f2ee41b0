"""Rows made when examples are loaded: length bins, packing, padded rows, masks."""
