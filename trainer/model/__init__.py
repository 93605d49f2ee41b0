"""The models: encoders, their layers, and the heads of pre-training."""
