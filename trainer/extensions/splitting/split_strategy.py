"""Strategies for models that no worker has as a whole, and the parts of weights that a worker holds."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import NamedTuple

from torch import Tensor

from trainer.strategies.step import Step
from trainer.strategies.strategy import Inference, Strategy


class Part(NamedTuple):
    """Rows of a weight, or of a moment (KIND/NAME), that this worker holds.

    shape: that of the whole; without dimensions it counts as one row. start: number of the first row.
    rows: the values themselves, in whose place others may be put; there may be none. writes: False where
    another worker writes the same rows into a checkpoint.
    """

    name: str
    shape: tuple[int, ...]
    start: int
    rows: Tensor
    writes: bool


class SplitInference(Inference, ABC):
    """Evaluation of a model that no worker has as a whole."""

    @abstractmethod
    def weight_parts(self) -> Sequence[Part]:
        """The weights that this worker holds, in the order of the model."""


class SplitStrategy(Strategy):
    """Training of a model that no worker has as a whole."""

    _step: Step

    @property
    def applied(self) -> int:
        return self._step.applied

    def read_skipped(self) -> int:
        return self._step.read_skipped()

    @property
    def gradient_norm(self) -> Tensor | None:
        return self._step.gradient_norm

    @abstractmethod
    def weight_parts(self) -> Sequence[Part]:
        """The weights that this worker holds, in the order of the model."""

    @abstractmethod
    def moment_parts(self) -> Sequence[Part]:
        """The optimiser's tensors that this worker holds; zeros before the first update."""

    @abstractmethod
    def set_applied(self, applied: int) -> None:
        """Set the count of updates that changed the weights, of the phase and of the optimiser."""

    def moments(self) -> dict[str, Tensor]:
        raise AssertionError("no worker has all moments of a split model")

    def load_moments(self, moments: dict[str, Tensor], applied: int) -> None:
        raise AssertionError("no worker has all moments of a split model")
