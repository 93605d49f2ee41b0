"""A wrapper around examples that counts the sentence pairs with label 1 while the examples are written."""

from typing import Any

from bertdata.examples.counting import convert_to_ints
from bertdata.examples.groups import get_pair_labels
from bertdata.records import MadeExamples


class PairLabelCounter:
    """Wrapper around the examples of a shard that counts the sentence pairs with label 1.

    Labels are counted whenever a batch is read, so each example must be read exactly once.

    ones: number of pairs with label 1 in the batches that were read so far.
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
        """Return a batch of the wrapped examples, and count the pairs with label 1 in it."""
        batch = self._examples.batch(start, stop, step)
        self.ones += sum(convert_to_ints(get_pair_labels(batch)))
        return batch
