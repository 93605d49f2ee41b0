"""Support for Graphcore's IPUs, through PopTorch 3 (Graphcore's version of PyTorch)."""
