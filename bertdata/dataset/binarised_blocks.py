"""Reader of fairseq's ``.bin`` files, which contain text as token ids.

The text is divided into blocks (examples) in the same way as fairseq's trainer does it, and the blocks keep
the order of the text. This module imports NumPy.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from bertdata.dataset.reader import OpenedDataset, Shard
from bertdata.errors import ShardError
from bertdata.examples import columns
from bertdata.examples.fairseq.blocks import make_fairseq_blocks
from bertdata.examples.groups import MASKS
from bertdata.examples.mlm.batch import MlmBatch
from bertdata.io import storage
from bertdata.records import IDS, ExampleBatch, ShardLayout
from bertdata.shards.fairseq.lines import read_lines
from bertdata.shards.rows import check_layout

_PIECE = 4096
_OBJECTIVE = "mlm"


@dataclass(frozen=True, kw_only=True, slots=True)
class BinarisedBlocks(OpenedDataset):
    """The blocks (unmasked examples) of a ``.bin`` file as a dataset. They are numbered as in fairseq.

    All token ids are in memory while blocks are read.
    """

    breaks: str
    tokens_per_sample: int

    @property
    def has_lengths(self) -> bool:
        return False

    def batches(self, shard: Shard) -> Iterator[ExampleBatch]:
        """Yield all blocks, a few thousand in each batch."""
        blocks = _read_blocks(shard.path, self.breaks, self.tokens_per_sample)
        for start in range(0, len(blocks), _PIECE):
            yield columns.shrink_ids(columns.slice_batch(blocks, start, start + _PIECE))


def open_blocks(path: str, breaks: str, tokens_per_sample: int) -> BinarisedBlocks:
    """Open a ``.bin`` file, with its ``.idx`` file beside it, as a dataset of blocks.

    As in fairseq, a line that is longer than a block becomes a block of its own, which is not cut. The
    layout's max_seq_length is then the length of the longest such block.

    breaks: value of fairseq's ``--sample-break-mode``.
    tokens_per_sample: value of fairseq's ``--tokens-per-sample``.

    Raises ShardError or SettingsError, which says what is wrong.
    """
    blocks = _read_blocks(path, breaks, tokens_per_sample)
    if not len(blocks):
        raise ShardError(f"{path}: holds no blocks")
    longest = int(columns.compute_lengths(blocks.ends).max())
    sizes = {IDS.size: longest, MASKS.size: 1}
    layout = ShardLayout.of_sizes(sizes, objective=_OBJECTIVE)
    check_layout(layout, path, sizes)
    shard = Shard(name=storage.get_base_name(path), path=path, examples=len(blocks), masked_tokens=0)
    return BinarisedBlocks(
        name=path,
        layout=layout,
        shards=(shard,),
        vocabulary_size=None,
        breaks=breaks,
        tokens_per_sample=tokens_per_sample,
    )


def _read_blocks(path: str, breaks: str, tokens_per_sample: int) -> MlmBatch:
    """Read all ids of a ``.bin`` file and divide them into blocks."""
    with storage.open_input(path) as file:
        lines = read_lines(file, path)
        return make_fairseq_blocks(lines.ids, lines.ends, breaks, tokens_per_sample)
