"""Communication between the workers of a training run: launching, meeting, exchanging tensors, stopping
together.
"""
