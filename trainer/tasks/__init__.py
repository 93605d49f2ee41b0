"""Tasks of pre-training beyond masked words and next sentence."""
