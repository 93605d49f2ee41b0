"""Text to blocks: a stream of lines cut as fairseq's four break modes cut it.

A line is a sentence's ids and the end token. A document ends with a blank line, which is the end token alone.
Twin of _native/examples/mlm.h.
"""

from collections.abc import Iterator, Sequence

BREAKS = ("none", "complete", "complete_doc", "eos")
"""The ways to cut, under fairseq's names, numbered as in the kernel."""

BLANK = 1
"""Length of a blank line."""

Span = tuple[int, int]
"""A block: its first id in the stream, and the first behind it."""


def cut_blocks(lines: Sequence[int], breaks: str, longest: int) -> Iterator[Span]:
    """The blocks of a stream of lines of these lengths, each of at most ``longest`` ids.

    By the mode (BREAKS):

    none           every ``longest`` ids, wherever that is
    complete       as many whole lines as fit
    complete_doc   the same, but a blank line ends the block and belongs to none
    eos            each line

    With whole lines, one that is longer than ``longest`` is a block by itself, too long.
    """
    if breaks == "none":
        total = sum(lines)
        for start in range(0, total, longest):
            yield start, min(start + longest, total)
        return
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


def fit(blocks: Iterator[Span], longest: int) -> Iterator[Span]:
    """The same blocks, those that are too long cut every ``longest`` ids."""
    for start, end in blocks:
        for piece in range(start, end, longest):
            yield piece, min(piece + longest, end)
