"""A stand-in for torch_xla.debug 2.9.0."""
