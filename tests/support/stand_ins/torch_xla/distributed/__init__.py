"""A stand-in for torch_xla.distributed 2.9.0."""
