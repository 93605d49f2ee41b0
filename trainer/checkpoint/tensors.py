"""The seam between a training and the tensors of its model: whole on each worker, or divided."""

from pathlib import Path
from typing import Protocol

from trainer.checkpoint.state import State
from trainer.checkpoint.writing import CheckpointWriter


class ModelTensors(Protocol):
    """The tensors of a training. Every worker makes each call."""

    def broadcast(self) -> None:
        """Give all workers that hold the same weights the same values."""

    def are_finite(self) -> bool:
        """True if every weight of the whole model is a number."""

    def save(self, state: State, writer: CheckpointWriter) -> None:
        """Save, or start to save with the writer, which waits for nothing. Counts come from the state."""


class TensorsReader(Protocol):
    """Reading of checkpoints into the tensors of a training. Every worker makes each call."""

    def read_weights(self, path: str) -> None:
        """Load weights of any origin, and the moments where they are asked for."""

    def read(self, path: Path, saved: State, applied: int) -> None:
        """Load weights and moments of this trainer's checkpoint. applied: updates that made the moments."""
