"""The models: encoders, their layers, and the heads (output layers) of pre-training."""
