"""Batches for evaluation, made in a thread before they are needed."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import chain, islice, repeat

import numpy as np

from bertdata.dataset.reader import OpenedDataset
from bertdata.examples import columns
from bertdata.records import ShardLayout
from trainer.data.batches import Batch, Form
from trainer.data.budgets import find_budgets, sample_sizes
from trainer.data.examples import CompactExamples, gather_examples
from trainer.data.loader import Prefetcher
from trainer.data.padded_rows import RowForm

_PREFETCHED_BATCHES = 4


def make_evaluation_form(
    data: OpenedDataset, *, batch_size: int, padded: bool = False, token_budget: int | None = None
) -> Form:
    """Return the object that makes the batches of ``load_evaluation_batches``, flat or padded.

    Packed rows are evaluated as single examples.
    """
    if padded:
        return RowForm()
    layout = _unpack_layout(data.layout)
    return Form(find_budgets(sample_sizes(data), layout, batch_size, token_budget=token_budget))


def load_evaluation_batches(
    data: OpenedDataset,
    *,
    form: Form,
    batch_size: int,
    workers: int = 1,
    rank: int = 0,
    limit: int | None = None,
) -> Prefetcher[Batch]:
    """Return this worker's part of the first ``limit`` examples, in the order of the files.

    Each worker gets consecutive examples. All workers get equally many batches, because in a model that is
    divided over the workers, all must take part in each batch. If a worker has too few examples, its last
    batches are filled up with missing examples.
    form: maker of batches, for rows of one example each. limit: None for all examples.
    """
    total = data.examples if limit is None else min(limit, data.examples)
    # 10 examples, 3 workers -> 0-2, 3-5, 6-9. The largest part has 4, which sets the number of batches.
    own = range(total * rank // workers, total * (rank + 1) // workers)
    largest = -(-total // workers)
    count = -(-largest // batch_size)
    layout = _unpack_layout(data.layout)

    def batches() -> Iterator[Batch]:
        groups = ([group] for group in columns.regroup_batches(data.read_range(own), batch_size))
        for group in islice(chain(groups, repeat([])), count):
            held = CompactExamples(group, layout)
            rows = np.arange(len(held.lengths))
            gathered = gather_examples([(held, rows, rows)], layout, rows + 1)
            yield from form.batches(gathered, batch_size, lambda batch: batch)

    return Prefetcher(batches(), _PREFETCHED_BATCHES)


def _unpack_layout(layout: ShardLayout) -> ShardLayout:
    """Return the layout of the same examples if each has a separate row, instead of packed rows."""
    return replace(layout, packing=None, sequences_per_row=1)
