"""Cuts fairseq's binarised lines into blocks, in the order of the text and with its blank lines.

Source: fairseq/data/token_block_dataset.py, prepend_token_dataset.py. Needs NumPy when it is imported.
"""

import numpy as np

from bertdata.errors import SettingsError
from bertdata.examples.columns import Array, compute_lengths
from bertdata.examples.groups import find_mask_names
from bertdata.examples.mlm.batch import MlmBatch
from bertdata.examples.mlm.blocks import BREAKS, cut_blocks

START = 0
"""Id of ``<s>``, which begins each block."""


def make_fairseq_blocks(ids: Array, ends: Array, breaks: str, tokens_per_sample: int) -> MlmBatch:
    """Cut lines into unmasked blocks. Example i of the result is block i of fairseq's dataset.

    ids: ids of all lines. Each line ends with ``</s>``. A blank line is ``</s>`` alone.
    ends: index in ids where each line ends.
    breaks: where blocks may end: "none" (anywhere), "complete" (after lines), "complete_doc" (after lines and
        at the end of a document) or "eos" (after every line). A line that is longer than a block becomes a
        block that is too long, unless breaks is "none".
    tokens_per_sample: most ids of a block, ``<s>`` included.

    Raises SettingsError if breaks is unknown or tokens_per_sample is below 2.
    """
    if breaks not in BREAKS:
        raise SettingsError(f"blocks is {breaks!r}, expected one of {', '.join(BREAKS)}")
    if tokens_per_sample < 2:
        raise SettingsError(f"tokens_per_sample is {tokens_per_sample}, expected 2 or more")
    # The limit is one id less, because <s> is added later.
    cut = cut_blocks(compute_lengths(ends).tolist(), breaks, tokens_per_sample - 1)
    spans = np.array([(start, end) for start, end in cut], np.int64).reshape(-1, 2)
    sizes = spans[:, 1] - spans[:, 0] + 1
    block_ends = np.cumsum(sizes)
    firsts = block_ends - sizes
    # Copy the ids of all blocks at once. Position p of a block takes the text's id at the block's start + p -
    # 1, so that position 0 is free for <s>. At first it holds the id before the block, or the first id of the
    # text if there is none (np.maximum avoids the index -1). It is overwritten with <s> below.
    places = np.repeat(spans[:, 0] - 1 - firsts, sizes) + np.arange(sizes.sum())
    made = np.asarray(ids)[np.maximum(places, 0)].astype(np.uint32)
    made[firsts] = START
    none = np.zeros(0, np.uint16), np.zeros(0, np.uint32), np.zeros(len(sizes), np.uint32)
    masks = dict(zip(find_mask_names(MlmBatch), none, strict=True))
    return MlmBatch(ids=made, ends=block_ends.astype(np.uint32), **masks)
