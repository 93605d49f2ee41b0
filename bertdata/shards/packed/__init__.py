"""Packed rows, which hold several examples each. Each layout has a module, all with the same interface."""
