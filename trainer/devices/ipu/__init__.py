"""The adapter of Graphcore's IPUs, through PopTorch 3."""
