"""Masks packed rows. All batches of an epoch draw from one PCG64 stream, so their order matters.

Pure-Python twin of _native/loaders/modernbert.h.
"""

from collections.abc import Sequence
from typing import NamedTuple

from bertdata.examples.pcg_stream import PcgStream
from bertdata.records import Buffer

IGNORED = -100
"""Label of a position whose id the model need not predict."""


class MaskedCells(NamedTuple):
    """The masked positions of one batch, row after row. A cell is a position of a row, also if it is padding.

    ids: ids with masks applied.
    labels: the original id of each cell to predict, and IGNORED for all others.
    attention: 1 for a cell with text, 0 for padding.
    redrawn: how many integers were drawn again, because otherwise some integers would be more probable than
        others.
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
    """Mask the cells of a batch. A cell is a position of a packed row.

    Random numbers are drawn for every cell, also for special tokens and padding, in two passes:
    1. A number in [0, 1) for each cell. Below 0.8 x mask_prob the cell becomes mask_id, below 0.9 x mask_prob
    it gets a random id, and below mask_prob it keeps its id. In all three cases the model must predict the
    original id, unless the cell is padding.
    2. An integer for each cell, which is its random id if step 1 gives it one. The integer is at most the
    largest id of the batch after mask_id was set in step 1.
    """
    draws = [stream.random() for _ in cells]
    ids = [mask_id if draw < 0.8 * mask_prob else found for found, draw in zip(cells, draws, strict=True)]
    # ModernBERT's program takes the limit of random ids from the masked batch, not from the vocabulary.
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
    """Return the state of an epoch's random stream after some cells were masked, without drawing for them.

    Each cell takes a 64-bit output for its number in [0, 1), and half an output for its integer.

    cells: number of masked cells.
    redrawn: number of integers that were drawn again.
    """
    stream, halves = PcgStream(seed), cells + redrawn
    stream.advance(cells + halves // 2)
    # With an odd number of halves, the low half of the last output is used. Its high half is kept for the
    # next integer.
    if halves % 2:
        stream.word()
    return stream.state
