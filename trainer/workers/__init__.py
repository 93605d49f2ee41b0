"""Communication between the workers of a run: starting them, connecting them, exchanging tensors, and
stopping together.
"""
