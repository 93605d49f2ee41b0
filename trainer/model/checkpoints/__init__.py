"""Other programs' checkpoints: one module a kind, all behind ``Checkpoint`` and this model's names."""
