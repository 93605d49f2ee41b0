"""Examples for torch's DataLoader: a stream divided among its workers, a map-style dataset, and a collator.

This module imports torch and NumPy.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, SupportsIndex

import numpy as np
import torch
from torch.utils.data import Dataset, IterableDataset, get_worker_info

from bertdata.dataset.reader import OpenedDataset
from bertdata.dataset.views.by_number import ExamplesByNumber
from bertdata.dataset.views.epochs import SharedEpoch
from bertdata.dataset.views.examples import iterate_examples, split_numbers
from bertdata.dataset.views.model_rows import make_model_rows
from bertdata.examples import columns
from bertdata.examples.dynamic_masking.masker import Draws, Masker
from bertdata.examples.objectives import find_objective
from bertdata.records import ShardLayout


class TorchExamples(IterableDataset[Any]):
    """The examples of one process (rank) of distributed training as an iterable dataset. It can be pickled.

    Each example is read by exactly one DataLoader worker.
    """

    def __init__(self, data: OpenedDataset, objective: str | None, rank: int, world: int) -> None:
        super().__init__()
        self._data = data
        self._objective = objective
        self._rank = rank
        self._world = world
        self._epoch = SharedEpoch(data)

    def set_epoch(self, epoch: int) -> None:
        """Set the epoch, whose masks are used from the next iteration on.

        The Trainer of transformers calls this.
        """
        self._epoch.set(epoch)

    def __iter__(self) -> Iterator[Any]:
        worker = get_worker_info()
        number, workers = (0, 1) if worker is None else (worker.id, worker.num_workers)
        numbers = split_numbers(self._data.examples, self._rank * workers + number, self._world * workers)
        return iterate_examples(self._epoch.data(), numbers, self._objective)


class TorchExamplesByNumber(Dataset[Any]):
    """The examples as a map-style dataset, for a DataLoader that shuffles or has a sampler.

    It can be pickled.
    """

    def __init__(self, data: OpenedDataset, objective: str | None) -> None:
        super().__init__()
        self._data = data
        self._objective = objective
        self._epoch = SharedEpoch(data)
        self._found = -1, ExamplesByNumber(data, objective)

    def set_epoch(self, epoch: int) -> None:
        """Set the epoch, whose masks are used from now on. The Trainer of transformers calls this."""
        self._epoch.set(epoch)

    def __len__(self) -> int:
        return self._data.examples

    def __getitem__(self, index: SupportsIndex | slice) -> Any:
        return self._examples().get(index)

    def __getitems__(self, numbers: Sequence[int]) -> list[Any]:
        """Return the examples of a batch. DataLoader calls this with the indices from its sampler."""
        return self._examples().get_several(numbers)

    def _examples(self) -> ExamplesByNumber:
        if self._found[0] != (number := self._epoch.number):
            self._found = number, ExamplesByNumber(self._epoch.data(), self._objective)
        return self._found[1]


@dataclass(frozen=True, kw_only=True, slots=True)
class Collator:
    """Function object that makes the tensors of a batch from examples. It can be pickled.

    The tensors have Hugging Face's names: ``input_ids``, ``attention_mask`` and the objective's other inputs.
    All are int64 and padded. For BERT they are all inputs of
    ``transformers.BertForPreTraining``, that is, also ``token_type_ids``, ``labels`` with -100 at positions
    that are not masked, and the label of the pair.

    masker: draws new masks for each batch with torch's random generator. The masks stored in the examples are
        then not used.
    is_to_longest: True pads to the longest example of the batch, False to the length of the layout.
    """

    layout: ShardLayout
    objective: str | None = None
    masker: Masker | None = None
    is_to_longest: bool = False

    def __call__(self, examples: Sequence[Any]) -> dict[str, torch.Tensor]:
        batch_type = find_objective(self.objective or self.layout.objective).batch_type
        batch = columns.convert_to_arrays(batch_type.of(examples, wide=True))
        if self.masker is not None:
            batch = columns.shrink_ids(self.masker.mask_batch(batch, _make_draws(len(examples), self.masker)))
        layout = self.layout
        if self.is_to_longest:
            layout = replace(layout, max_seq_length=max(len(example.ids) for example in examples))
        return {name: torch.from_numpy(rows) for name, rows in make_model_rows(batch, layout).items()}


def _make_draws(examples: int, masker: Masker) -> Draws:
    """Return the random numbers for the masks of a batch, from a key that torch's generator draws for each
    batch.

    DataLoader workers have different seeds, so two batches do not get the same key.
    """
    key = int(torch.randint(1 << 62, ()))
    rate = masker.settings.masked_lm_prob
    return Draws(
        keys=np.full(examples, key, np.uint64),
        numbers=np.arange(examples, dtype=np.uint64),
        rates=np.full(examples, rate),
    )
