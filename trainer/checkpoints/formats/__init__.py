"""Other programs' checkpoints, one module a kind."""
