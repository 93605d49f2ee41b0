"""The time axis of a schedule's picture: from seconds to pixels, with a gap where much is alike."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from trainer.extensions.splitting.plan.plan import Plan
from trainer.extensions.splitting.plan.timeline import BACKWARD, Event

_LEAST, _MOST = 1000, 2000  # pixels of the time axis
_PIXELS = 36  # of a micro-batch's passes, where they fit into _MOST
_GAP = 124
_TICK = 90  # pixels between two ticks at least


@dataclass(frozen=True, slots=True)
class Axis:
    """Spans of time from left to right, with a gap between two of them.

    left: the first pixel. scale: pixels of a second. left_out: micro-batches between the spans.
    """

    left: int
    scale: float
    spans: tuple[tuple[float, float], ...]
    left_out: int = 0

    @property
    def right(self) -> int:
        return math.ceil(self.place(self.spans[-1][1]))

    def place(self, seconds: float) -> float:
        """The pixel of a time within the spans."""
        x = float(self.left)
        for start, end in self.spans:
            if seconds <= end:
                return x + (seconds - start) * self.scale
            x += (end - start) * self.scale + _GAP
        raise ValueError(f"{seconds} s is after the end of the axis")

    def shown(self, start: float, end: float) -> Iterator[tuple[float, float]]:
        """The parts of a time that lie within the spans."""
        for first, last in self.spans:
            if max(start, first) < min(end, last):
                yield max(start, first), min(end, last)

    def ticks(self) -> Iterator[float]:
        """Round times (1, 2 or 5 times a power of ten) within the spans."""
        least = _TICK / self.scale
        power = 10.0 ** math.floor(math.log10(least))
        step = next(factor for factor in (1, 2, 5, 10) if factor * power >= least * (1 - 1e-9)) * power
        for start, end in self.spans:
            for number in range(math.ceil(start / step), math.floor(end / step) + 1):
                yield round(number * step, 12)


def make_axis(plan: Plan, events: Sequence[Event], *, left: int) -> Axis:
    """An axis for all events of the plan, in which passes are wide enough to be told apart."""
    spans, left_out = _spans(plan, events)
    shown = plan.micro_batches - left_out + len(plan.stages)
    seconds = sum(end - start for start, end in spans)
    pixels = min(max(_LEAST, _PIXELS * shown), _MOST)
    return Axis(left, pixels / seconds, spans, left_out)


def _spans(plan: Plan, events: Sequence[Event]) -> tuple[tuple[tuple[float, float], ...], int]:
    """The times to show, and the number of micro-batches that the first stage makes between them."""
    last = max(event.end for event in events)
    keep = len(plan.stages) + 6  # the pipeline fills, or drains, and some micro-batches more
    left_out = plan.micro_batches - 2 * keep
    if left_out < 8:
        return ((0.0, last),), 0
    first = [event for event in events if event.stage == 0]
    start = next(one.end for one in first if (one.kind, one.micro_batch) == (BACKWARD, keep - 1))
    number = plan.micro_batches - keep
    end = next(one.end for one in first if (one.kind, one.micro_batch) == (BACKWARD, number - 1))
    return ((0.0, start), (end, last)), left_out
