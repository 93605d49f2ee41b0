"""Fine-tuning of a real encoder beside transformers' ``Trainer``: accuracy after training, time of a step."""
