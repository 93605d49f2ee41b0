"""Blocks, order and masks of fairseq's masked_lm task, reproduced bit for bit."""
