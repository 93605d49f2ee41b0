"""The share of pairs with the label 1, counted while examples are written."""

from typing import Any

from bertdata.examples.counting import plain
from bertdata.examples.groups import pair_labels
from bertdata.records import MadeExamples


class PairWatch:
    """Examples whose pair labels are summed when their batches are taken, each once. ones: the sum."""

    def __init__(self, examples: MadeExamples) -> None:
        self._examples = examples
        self.ones = 0

    def __len__(self) -> int:
        return len(self._examples)

    @property
    def tokens(self) -> int:
        return self._examples.tokens

    @property
    def masked(self) -> int:
        return self._examples.masked

    def batch(self, start: int, stop: int, step: int = 1) -> Any:
        """The batch of the examples that are watched."""
        batch = self._examples.batch(start, stop, step)
        self.ones += sum(plain(pair_labels(batch)))
        return batch
