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
    data: OpenedDataset,
    *,
    batch_size: int,
    padded: bool = False,
    token_budget: int | None = None,
    multiple: int = 1,
) -> Form:
    """Return the object that makes batches for ``load_evaluation_batches``.

    If the dataset's rows are packed, each example is evaluated in a row by itself.

    padded: True for batches of padded rows, False for flat batches.
    token_budget: flat batches are padded to multiples of this number. None: sizes with little padding are
    chosen.
    multiple: number of which the number of tokens of each flat batch is a multiple.
    """
    if padded:
        return RowForm()
    layout, sizes = _unpack_layout(data.layout), sample_sizes(data)
    return Form(find_budgets(sizes, layout, batch_size, token_budget=token_budget, multiple=multiple))


def load_evaluation_batches(
    data: OpenedDataset,
    *,
    form: Form,
    batch_size: int,
    workers: int = 1,
    rank: int = 0,
    limit: int | None = None,
) -> Prefetcher[Batch]:
    """Return batches with this worker's share of the dataset's examples, in the order of the files.

    Each worker gets consecutive examples. All workers get equally many batches, because a model may be
    divided over the workers, and then all must take part in each batch. If a worker has too few examples, its
    last batches are filled up with missing examples.

    form: makes the batches (see ``make_evaluation_form``).
    batch_size: number of examples in a batch.
    limit: evaluate only this number of examples, from the beginning of the dataset. None evaluates all.
    """
    total = data.examples if limit is None else min(limit, data.examples)
    # With 10 examples and 3 workers, the workers get the examples 0-2, 3-5 and 6-9. The largest share, of 4
    # examples, determines the number of batches of all workers.
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
    """Return the layout of a dataset (its numbers, such as max_seq_length) as if each example had a row by
    itself.
    """
    return replace(layout, packing=None, sequences_per_row=1)
