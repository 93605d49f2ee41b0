"""Packed rows, each of several examples: one module a layout, behind one PackWriter and one PackReader."""
