"""Signatures, and descriptions of datasets and models in formats that other programs read and check."""
