"""Optimisers by name, each with the behaviour of its original program."""
