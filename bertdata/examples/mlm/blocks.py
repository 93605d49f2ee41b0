"""Cuts a text into blocks, in the four ways of fairseq.

The text is a stream of lines. A line is a sentence's ids and an end token. A document ends with a blank line,
which is an end token alone. Pure-Python twin of _native/examples/mlm.h.
"""

from collections.abc import Iterator, Sequence

BREAKS = ("none", "complete", "complete_doc", "eos")
"""The ways to cut a text into blocks, by fairseq's names. The function cut_blocks describes them.

Their order is that of the numbers in the C++ kernel.
"""

BLANK = 1
"""Number of ids in a blank line."""

Span = tuple[int, int]
"""A block: the index of its first id in the stream of lines, and the index after its last id."""


def cut_blocks(lines: Sequence[int], breaks: str, longest: int) -> Iterator[Span]:
    """Cut a stream of lines into blocks of at most ``longest`` ids.

    lines: number of ids of each line.
    breaks: the way to cut:

    none           every ``longest`` ids, also within a line
    complete       as many whole lines as fit
    complete_doc   as complete, but a blank line ends the block and is part of no block
    eos            each line is a block

    Except with "none", a line longer than ``longest`` becomes a block that is too long. ``cut_long_blocks``
    then cuts it.
    """
    if breaks == "none":
        total = sum(lines)
        for start in range(0, total, longest):
            yield start, min(start + longest, total)
        return
    # For example, lines of [5, 3, 9, 1, 4] ids with at most 10 ids in a block and breaks "complete_doc" give
    # the blocks (0, 8), (8, 17) and (18, 22). The third line does not fit into the first block. The blank
    # line at index 17 is left out.
    start = end = 0
    for length in lines:
        is_border = length == BLANK and breaks == "complete_doc"
        is_full = end - start + length > longest
        if start < end and (is_border or is_full or breaks == "eos"):
            yield start, end
            start = end
        end += length
        if is_border:
            start = end
    if start < end:
        yield start, end


def cut_long_blocks(blocks: Iterator[Span], longest: int) -> Iterator[Span]:
    """Cut each block that is too long into pieces of ``longest`` ids. Other blocks stay as they are."""
    for start, end in blocks:
        for piece in range(start, end, longest):
            yield piece, min(piece + longest, end)
