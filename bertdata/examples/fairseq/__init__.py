"""Masks and order of fairseq's task of masked words, to the bit."""
