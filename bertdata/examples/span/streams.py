"""Random streams for drawing spans: a separate stream for each block, or one NumPy stream for all blocks.

SpanBERT's program uses one NumPy stream, which is in bertdata.examples.random_stream. Both kinds of stream
draw numbers in [0, 1) and integers below a limit, from which everything else is computed. Pure-Python twin of
_native/examples/span_streams.h.
"""

from typing import Protocol

from bertdata.examples.dynamic_masking.counter_stream import CounterStream


class SpanStream(Protocol):
    """Interface of the random streams that ``draw_spans`` and ``replace_spans`` use."""

    def random(self) -> float:
        """Return a number in [0, 1)."""
        ...

    def below(self, limit: int) -> int:
        """Return a random integer from 0 to ``limit - 1``."""
        ...


class BlockStream(CounterStream):
    """Random stream of one block. It does not depend on how much is drawn for other blocks."""

    def random(self) -> float:
        """Return a number in [0, 1) with 32 random bits."""
        return self.word() / (1 << 32)


def choose_index(cumulative: tuple[float, ...], stream: SpanStream) -> int:
    """Choose an index at random and return it.

    cumulative: for each index, the probability of this index or an earlier one.
    """
    draw = stream.random()
    return next(index for index, share in enumerate(cumulative) if draw < share)
