"""Masking of packed rows. All batches of an epoch draw from one PCG64 stream, in their order.

Pure-Python twin of _native/loaders/modernbert.h.
"""

from collections.abc import Sequence
from typing import NamedTuple

from bertdata.examples.pcg_stream import PcgStream
from bertdata.records import Buffer

IGNORED = -100
"""Label of a position that the model does not predict."""


class MaskedCells(NamedTuple):
    """The masked cells of one batch, row after row. A cell is one position of a row, padding included.

    ids: ids with masks applied.
    labels: the original id of a position to predict, else IGNORED.
    attention: 1 where a cell holds text, 0 where it holds padding.
    redrawn: number of integers that were drawn again because they would have made the result non-uniform.
    tokens: number of cells without padding.
    """

    ids: Buffer
    labels: Buffer
    attention: Buffer
    redrawn: int
    tokens: int


def mask_cells(
    cells: Sequence[int], stream: PcgStream, *, mask_prob: float, mask_id: int, padding_id: int
) -> MaskedCells:
    """Mask the cells of a batch.

    Draws happen for every cell, also for special tokens and padding, in two passes:
    1. A number u in [0, 1) for each cell. Below 0.8 x mask_prob the cell becomes mask_id, below 0.9 x
    mask_prob a random id, below mask_prob it keeps its id. In all three cases the model must predict the
    cell's original id, unless the cell is padding.
    2. An integer for each cell: the random id, which is used only if step 1 says so. It is at most the
    largest id in the batch after step 1 has set the masks.
    """
    draws = [stream.random() for _ in cells]
    ids = [mask_id if draw < 0.8 * mask_prob else found for found, draw in zip(cells, draws, strict=True)]
    # ModernBERT's program takes the range of random ids from the batch after masking, not from the
    # vocabulary.
    limit = max(ids) + 1
    words = stream.words
    others = [stream.below(limit) for _ in cells]
    redrawn = stream.words - words - len(cells)
    for place, draw in enumerate(draws):
        if 0.8 * mask_prob <= draw < 0.9 * mask_prob:
            ids[place] = others[place]
    labels = [
        found if draw < mask_prob and found != padding_id else IGNORED
        for found, draw in zip(cells, draws, strict=True)
    ]
    attention = [int(found != padding_id) for found in cells]
    return MaskedCells(ids, labels, attention, redrawn, sum(attention))


def compute_stream_state(seed: int, cells: int, redrawn: int) -> tuple[int, int | None]:
    """Return the state of an epoch's stream after this many cells and redrawn integers, without drawing them.

    Each cell uses one whole 64-bit output for its double and half an output for its integer.
    """
    stream, halves = PcgStream(seed), cells + redrawn
    stream.advance(cells + halves // 2)
    # If the number of halves is odd, the low half of the last output is used and its high half is kept for
    # the next integer.
    if halves % 2:
        stream.word()
    return stream.state
