"""Random examples: for trials of speed and memory without a dataset."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from bertdata.dataset.reader import OpenedDataset, Shard
from bertdata.errors import SettingsError
from bertdata.examples import columns
from bertdata.examples.bert.batch import BertBatch
from bertdata.records import ExampleBatch, ShardLayout
from trainer.data.order import numbers


@dataclass(frozen=True, kw_only=True, slots=True)
class GeneratedData(OpenedDataset):
    """Random examples, a function of the seed and the shard's name."""

    seed: int

    def batches(self, shard: Shard) -> Iterator[ExampleBatch]:
        """The shard's examples as NumPy columns: full sequences, every slot masked."""
        assert self.vocabulary_size is not None
        rows, ids, masks = shard.examples, self.layout.max_seq_length, self.layout.max_predictions_per_seq
        drawn = numbers(rows * (ids + 2 * masks + 2), self.seed, shard.name)
        tokens, labels, jumps, rest = np.split(drawn, np.cumsum([rows * ids, rows * masks, rows * masks]))
        stride = (ids - 2) // masks
        jumps = jumps.reshape(rows, masks) % np.uint64(stride)
        positions = jumps + np.arange(1, 1 + stride * masks, stride, dtype=np.uint64)
        yield columns.compact(
            BertBatch(
                ids=tokens % np.uint64(self.vocabulary_size),
                ends=np.arange(ids, (rows + 1) * ids, ids, dtype=np.uint32),
                first_lengths=(1 + rest[:rows] % np.uint64(ids - 1)).astype(np.uint32),
                positions=positions.ravel().astype(np.uint16),
                labels=labels % np.uint64(self.vocabulary_size),
                mask_ends=np.arange(masks, (rows + 1) * masks, masks, dtype=np.uint32),
                next_labels=(rest[rows:] % np.uint64(2)).astype(np.uint8),
            )
        )


def generated_data(
    layout: ShardLayout, *, vocabulary_size: int, seed: int = 0, files: int = 8, examples: int = 4096
) -> OpenedDataset:
    """Random examples without padding, in ``files`` shards of ``examples`` each, made when they are read."""
    masks, ids = layout.max_predictions_per_seq, layout.max_seq_length
    if not 0 < masks <= ids - 2:
        raise SettingsError(
            f"max_predictions_per_seq is {masks}, expected 1 to max_seq_length - 2 ({ids - 2})"
        )
    names = (f"generated-{number}" for number in range(files))
    shards = tuple(Shard(name=name, path="", examples=examples) for name in names)
    return GeneratedData(
        name="generated data", layout=layout, shards=shards, vocabulary_size=vocabulary_size, seed=seed
    )
