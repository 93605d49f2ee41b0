"""Recipes of encoders after BERT: StableAdamW, the batch warm-up, counts of updates by tokens."""
