"""The blocks, the order of examples and the masks of fairseq's masked_lm task, reproduced bit for bit."""
