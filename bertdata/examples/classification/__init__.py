"""Fine-tuning examples of one or two texts with a label or a score."""
