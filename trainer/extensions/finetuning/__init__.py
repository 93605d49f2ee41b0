"""Tasks learned from a pre-trained model."""
