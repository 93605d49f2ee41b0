"""Masks of packed rows, drawn from PCG64 after packing: one stream an epoch, batch after batch.

Twin of _native/loaders/modernbert.h.
"""

from collections.abc import Sequence
from typing import NamedTuple

from bertdata.examples.pcg_stream import PcgStream
from bertdata.records import Buffer

IGNORED = -100
"""The label of a cell that is no target."""


class MaskedCells(NamedTuple):
    """The cells of a batch, row after row: masked ids, labels, and 1 where a cell held no padding.

    redrawn: integers that were drawn anew, as they would not be uniform. tokens: cells that held no padding.
    """

    ids: Buffer
    labels: Buffer
    attention: Buffer
    redrawn: int
    tokens: int


def mask_cells(
    cells: Sequence[int], stream: PcgStream, *, mask_prob: float, mask_id: int, padding_id: int
) -> MaskedCells:
    """Mask a batch's cells: all are drawn for, special tokens and padding too.

    First a random u a cell: below 0.8 of ``mask_prob`` it becomes ``mask_id``, below 0.9 of it a random id,
    and below it it is a target if it is no padding. Then an integer a cell, used or not: a random id, from 0
    to the largest that is there when masks are set.
    """
    draws = [stream.random() for _ in cells]
    ids = [mask_id if draw < 0.8 * mask_prob else found for found, draw in zip(cells, draws, strict=True)]
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


def stream_state(seed: int, cells: int, redrawn: int) -> tuple[int, int | None]:
    """The state of an epoch's stream behind so many cells and redrawn integers, found at once.

    A cell draws one double, of an output, and one integer, of a half. With an odd number of halves the last
    output is an integer's, whose other half is kept.
    """
    stream, halves = PcgStream(seed), cells + redrawn
    stream.advance(cells + halves // 2)
    if halves % 2:
        stream.word()
    return stream.state
