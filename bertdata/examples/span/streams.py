"""Random streams of spans: one of each block by itself, or NumPy's for all, as SpanBERT's program draws.

Both draw numbers in [0, 1) and integers below a limit, of which all other draws are made. NumPy's is
bertdata.examples.random_stream. Twin of _native/examples/span_streams.h.
"""

from typing import Protocol

from bertdata.examples.dynamic_masking.counter_stream import CounterStream


class SpanStream(Protocol):
    """A random stream for ``draw_spans`` and ``replace``."""

    def random(self) -> float:
        """A number in [0, 1)."""
        ...

    def below(self, limit: int) -> int:
        """An integer in [0, limit)."""
        ...


class BlockStream(CounterStream):
    """The stream of one block, which no other block's draws touch."""

    def random(self) -> float:
        """A number in [0, 1) of 32 bits: one output."""
        return self.word() / (1 << 32)


def choose(cumulative: tuple[float, ...], stream: SpanStream) -> int:
    """The index of one of several weights: the first whose cumulative share is above one draw."""
    draw = stream.random()
    return next(index for index, share in enumerate(cumulative) if draw < share)
