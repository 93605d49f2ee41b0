"""Batches for evaluation, prefetched in a thread."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import chain, islice, repeat

import numpy as np

from bertdata.dataset.reader import OpenedDataset
from bertdata.examples import columns
from bertdata.records import ShardLayout
from trainer.data.batches import Batch, Form
from trainer.data.budgets import find_budgets, sample_sizes
from trainer.data.examples import CompactExamples, gather
from trainer.data.loader import Prefetcher
from trainer.data.padded_rows import RowForm

_PREFETCHED_BATCHES = 4


def make_evaluation_form(
    data: OpenedDataset, *, batch_size: int, padded: bool = False, token_budget: int | None = None
) -> Form:
    """The form of ``evaluation_batches``: single examples, also of packed rows."""
    if padded:
        return RowForm()
    layout = _unpacked(data.layout)
    return Form(find_budgets(sample_sizes(data), layout, batch_size, token_budget=token_budget))


def evaluation_batches(
    data: OpenedDataset,
    *,
    form: Form,
    batch_size: int,
    workers: int = 1,
    rank: int = 0,
    limit: int | None = None,
) -> Prefetcher[Batch]:
    """This worker's part of the first ``limit`` examples (default: all), in the order of the files.

    Each part is a run of consecutive examples. Those of packed rows come each in a row of its own, and the
    form must be one for such rows. A part's last batch is filled with missing examples, and
    each worker gets the same number of batches, so that no worker waits for another in a program that they
    run together.
    """
    total = data.examples if limit is None else min(limit, data.examples)
    own = range(total * rank // workers, total * (rank + 1) // workers)
    largest = -(-total // workers)
    count = -(-largest // batch_size)
    layout = _unpacked(data.layout)

    def batches() -> Iterator[Batch]:
        groups = ([group] for group in columns.regroup(data.run(own), batch_size))
        for group in islice(chain(groups, repeat([])), count):
            held = CompactExamples(group, layout)
            rows = np.arange(len(held.lengths))
            gathered = gather([(held, rows, rows)], layout, rows + 1)
            yield from form.batches(gathered, batch_size, lambda batch: batch)

    return Prefetcher(batches(), _PREFETCHED_BATCHES)


def _unpacked(layout: ShardLayout) -> ShardLayout:
    """The layout of the same examples, each in a row of its own."""
    return replace(layout, packing=None, sequences_per_row=1)
