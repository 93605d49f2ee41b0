"""Communication between the workers of a run: launching, meeting, exchanging tensors, stopping together."""
