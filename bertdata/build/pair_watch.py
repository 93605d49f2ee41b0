"""A wrapper of examples that counts the sentence pairs with label 1 while examples are written."""

from typing import Any

from bertdata.examples.counting import convert_to_ints
from bertdata.examples.groups import get_pair_labels
from bertdata.records import MadeExamples


class PairWatch:
    """Wrapper of examples that counts the labels of their sentence pairs when batches are taken.

    Each example must be taken exactly once.

    ones: number of labels 1 so far.
    """

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
        """Return a batch of the wrapped examples, and add the labels of their pairs to the counts."""
        batch = self._examples.batch(start, stop, step)
        self.ones += sum(convert_to_ints(get_pair_labels(batch)))
        return batch
