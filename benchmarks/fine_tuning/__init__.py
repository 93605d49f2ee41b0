"""Fine-tuning of a public encoder by this trainer and by transformers' ``Trainer``: accuracy and time per
step.
"""
