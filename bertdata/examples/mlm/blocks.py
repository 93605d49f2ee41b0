"""Cuts a text into blocks, in the four ways of fairseq.

The text is a stream of lines. A line is a sentence's ids and an end token. A document ends with a blank line,
which is an end token alone. Pure-Python twin of _native/examples/mlm.h.
"""

from collections.abc import Iterator, Sequence

BREAKS = ("none", "complete", "complete_doc", "eos")
"""The ways to cut a text, named as in fairseq and in the order of the C++ kernel's numbers. The function
cut_blocks describes them.
"""

BLANK = 1
"""Number of ids in a blank line."""

Span = tuple[int, int]
"""A block as (index of its first id in the stream, index after its last id)."""


def cut_blocks(lines: Sequence[int], breaks: str, longest: int) -> Iterator[Span]:
    """Cut a stream of lines into blocks of at most ``longest`` ids.

    lines: number of ids of each line.
    breaks: how to cut:

    none           every ``longest`` ids, also within a line
    complete       as many whole lines as fit
    complete_doc   the same, but a blank line ends the block and is part of no block
    eos            each line is a block

    Except with "none", a line longer than ``longest`` becomes a block that is too long. ``cut_long_blocks``
    then cuts it.
    """
    if breaks == "none":
        total = sum(lines)
        for start in range(0, total, longest):
            yield start, min(start + longest, total)
        return
    # Example: lines of [5, 3, 9, 1, 4] ids, at most 10 ids in a block, complete_doc -> blocks (0, 8), (8,
    # 17), (18, 22). The third line does not fit into the first block, and the blank line at 17 is left out.
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
    """Cut blocks that are too long into pieces of ``longest`` ids. Other blocks stay as they are."""
    for start, end in blocks:
        for piece in range(start, end, longest):
            yield piece, min(piece + longest, end)
