"""Optimisers and learning-rate schedules by name, each with the behaviour of its original program."""
