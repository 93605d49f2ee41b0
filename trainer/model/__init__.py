"""Models, and other programs' checkpoints of them."""
