"""A dataset in numbers and pictures."""
