"""fairseq's blocks of binarised lines: in the order of the text, blank lines and all.

Source: fairseq/data/token_block_dataset.py, prepend_token_dataset.py. Needs NumPy when it is imported.
"""

import numpy as np

from bertdata.errors import SettingsError
from bertdata.examples.columns import Array, lengths
from bertdata.examples.groups import mask_names
from bertdata.examples.mlm.batch import MlmBatch
from bertdata.examples.mlm.blocks import BLANK, BREAKS, cut_blocks

START = 0
"""The id of ``<s>``, put before each block."""


def fairseq_blocks(ids: Array, ends: Array, breaks: str, tokens_per_sample: int) -> MlmBatch:
    """All blocks of the lines, unmasked: block i of fairseq's dataset is example i.

    ids: of all lines, each with its ``</s>``, a blank line being that alone; line i ends before ``ends[i]``.
    A line that is longer than a block is one by itself, too long. breaks: one of BREAKS. SettingsError for
    another, or for blocks of fewer than two ids.
    """
    if breaks not in BREAKS:
        raise SettingsError(f"blocks is {breaks!r}, expected one of {', '.join(BREAKS)}")
    if tokens_per_sample < 2:
        raise SettingsError(f"tokens_per_sample is {tokens_per_sample}, expected 2 or more")
    cut = cut_blocks(lengths(ends).tolist(), breaks, tokens_per_sample - 1)
    spans = np.array([(start, end) for start, end in cut], np.int64).reshape(-1, 2)
    if breaks == "complete_doc":
        spans = spans[spans[:, 1] - spans[:, 0] > BLANK]
    sizes = spans[:, 1] - spans[:, 0] + 1
    block_ends = np.cumsum(sizes)
    firsts = block_ends - sizes
    # the id at a block's place p is that of the text at its start + p - 1
    places = np.repeat(spans[:, 0] - 1 - firsts, sizes) + np.arange(sizes.sum())
    made = np.asarray(ids)[np.maximum(places, 0)].astype(np.uint32)
    made[firsts] = START
    none = np.zeros(0, np.uint16), np.zeros(0, np.uint32), np.zeros(len(sizes), np.uint32)
    masks = dict(zip(mask_names(MlmBatch), none, strict=True))
    return MlmBatch(ids=made, ends=block_ends.astype(np.uint32), **masks)
