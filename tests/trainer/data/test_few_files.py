"""Any number of files and workers: every worker has data, and each epoch is every example once."""

import dataclasses
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bertdata.dataset.reader import OpenedDataset
from bertdata.records import ShardLayout
from tests.support.padded_examples import PaddedForm
from trainer.data.examples import Rows
from trainer.data.generated import generate_data
from trainer.data.loader import Loader
from trainer.data.reading import Reading, choose_reading, describe_streams

LAYOUT = ShardLayout(max_seq_length=12, max_predictions_per_seq=3)


def data_of(sizes: list[int]) -> OpenedDataset:
    data = generate_data(LAYOUT, vocabulary_size=60000, files=len(sizes), examples=1)
    shards = (
        dataclasses.replace(shard, examples=size) for shard, size in zip(data.shards, sizes, strict=True)
    )
    return dataclasses.replace(data, shards=tuple(shards))


@given(
    sizes=st.lists(st.integers(1, 30), min_size=1, max_size=6),
    workers=st.integers(1, 9),
    reading=st.sampled_from([Reading(8), Reading(1), Reading(3), Reading(2, 8), Reading(6, 64)]),
    batch_size=st.integers(1, 3),
)
def test_every_worker_has_data_and_an_epoch_is_every_example_once(sizes, workers, reading, batch_size):
    data, said = data_of(sizes), list[str]()
    loaders = [
        Loader(
            Rows(data), form=PaddedForm(), batch_size=batch_size, workers=workers, rank=rank, seed=2,
            open_files=reading.open_files, chunk_rows=reading.chunk_rows, warn=said.append,
        )
        for rank in range(workers)
    ]  # fmt: skip
    seen, size = Counter[bytes](), workers * batch_size
    updates = int(np.lcm(sum(sizes), size)) // size
    for _ in range(updates):
        for loader in loaders:
            (batch,) = next(loader).batches
            assert len(batch) == batch_size
            seen.update(row.numpy().tobytes() for row in batch.input_ids)
    for loader in loaders:
        loader.close()
    epochs = updates * size // sum(sizes)
    assert len(seen) == sum(sizes)
    assert set(seen.values()) == {epochs}
    if reading.chunk_rows == 0:
        few = f"generated data: {len(sizes)} files for {workers} workers, so each file is read by several"
        assert said == [few] * (len(sizes) < workers)


TEN = "reading 10 of 10 files at the same time, in chunks of 2048 rows"


@pytest.mark.parametrize(
    ("counts", "said"),
    [
        ([2], TEN),
        ([2, 3, 2], f"{TEN}; each of the 3 workers reads 2 to 3 of them"),
        ([10, 10], f"{TEN}; each of the 2 workers reads all of them"),
    ],
)
def test_the_log_says_what_each_worker_reads(counts, said):
    assert choose_reading("auto", 10, 128, is_shareable=True) == Reading(10, 2048)
    assert describe_streams(10, 10, 2048, counts) == said
