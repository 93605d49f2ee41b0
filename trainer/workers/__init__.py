"""Communication between the workers of one training run, one adapter for each launcher."""
