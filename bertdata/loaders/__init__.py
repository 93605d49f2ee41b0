"""Data loaders of other programs, reproduced bit for bit: the same order of examples, packed rows and
masks.
"""
