"""Picture of a plan's timeline in SVG, with a row per stage, a box per pass, and time from left to right."""

import math
from collections.abc import Collection, Iterator, Sequence
from xml.sax.saxutils import escape

from bertdata.errors import SettingsError
from trainer.splitting.plan.plan import Plan
from trainer.splitting.plan.timeline import (
    ALL_REDUCE,
    BACKWARD,
    FORWARD,
    RECEIVE,
    SEND,
    STEP,
    Event,
    compute_idle_fraction,
    simulate_update,
)
from trainer.splitting.show.table import format_devices, format_four_digits, format_layers

_COLOURS = {
    FORWARD: ("#4a7fb5", "#6c9bc9"),
    BACKWARD: ("#d9822b", "#e6a15c"),
    SEND: ("#5b5b5b", "#5b5b5b"),
    RECEIVE: ("#5b5b5b", "#5b5b5b"),
    ALL_REDUCE: ("#8657a6", "#8657a6"),
    STEP: ("#3d8b63", "#3d8b63"),
}
"""Colours of each type of pass, for even and for odd micro-batches.

Neighbouring boxes have different colours, so they can be distinguished even if they are too
narrow for a number.
"""

MOST_DRAWN = 200_000
"""Largest product of micro-batches and stages that is drawn.

All passes are in memory until they are drawn, so the product must be limited.
"""

_IDLE = "#ececec"
_LEGEND = (
    *((FORWARD, "forward"), (BACKWARD, "backward"), (SEND, "transfer")),
    *((ALL_REDUCE, "all-reduce of the gradients"), (STEP, "optimiser's step"), (None, "idle")),
)
_FONT = "font-family='Helvetica, Arial, sans-serif'"
_LEFT, _RIGHT, _TOP, _ROW, _BAR = 116, 30, 92, 44, 34  # pixels
_LEAST, _MOST = 1000, 2000  # limits on the length of the time axis, in pixels
_PIXELS = 36  # preferred width of a micro-batch's passes in pixels, unless the axis would exceed _MOST
_GAP = 124
_TICK = 90  # smallest distance between two ticks, in pixels


class Axis:
    """The time axis, scaled so that passes are wide enough to be distinguished.

    spans: the intervals of time that are shown. There is one for the whole update, or two for its beginning
        and its end with a gap between them.
    left_out: number of micro-batches in the gap.
    """

    def __init__(self, plan: Plan, events: Sequence[Event]) -> None:
        last = max(event.end for event in events)
        self.spans: tuple[tuple[float, float], ...] = ((0.0, last),)
        keep = len(plan.stages) + 6  # micro-batches shown at each end: a full pipeline and 6 more
        left_out = plan.micro_batches - 2 * keep
        self.left_out = left_out if left_out >= 8 else 0
        if self.left_out:
            ends = {one.micro_batch: one.end for one in events if (one.stage, one.kind) == (0, BACKWARD)}
            self.spans = ((0.0, ends[keep - 1]), (ends[plan.micro_batches - keep - 1], last))
        shown = plan.micro_batches - self.left_out + len(plan.stages)
        pixels = min(max(_LEAST, _PIXELS * shown), _MOST)
        self._scale = pixels / sum(end - start for start, end in self.spans)  # pixels per second

    @property
    def right_end(self) -> int:
        """The horizontal pixel at which the axis ends."""
        return math.ceil(self.find_pixel(self.spans[-1][1]))

    def find_pixel(self, seconds: float) -> float:
        """Return the horizontal pixel for a time, which must lie in a span."""
        x = float(_LEFT)
        for start, end in self.spans:
            if seconds <= end:
                return x + (seconds - start) * self._scale
            x += (end - start) * self._scale + _GAP
        raise ValueError(f"{seconds} s is after the end of the axis")

    def cut_to_spans(self, start: float, end: float) -> Iterator[tuple[float, float]]:
        """Yield the parts of an interval of time that lie in the spans, as pairs of start and end."""
        for first, last in self.spans:
            if max(start, first) < min(end, last):
                yield max(start, first), min(end, last)

    def list_ticks(self) -> Iterator[float]:
        """Yield the times at which the axis has ticks.

        They are round numbers (1, 2 or 5 times a power of ten) in the spans.
        """
        least = _TICK / self._scale
        power = 10.0 ** math.floor(math.log10(least))
        step = next(factor for factor in (1, 2, 5, 10) if factor * power >= least * (1 - 1e-9)) * power
        for start, end in self.spans:
            for number in range(math.ceil(start / step), math.floor(end / step) + 1):
                yield round(number * step, 12)


def draw_schedule(plan: Plan) -> str:
    """Return the timeline of a plan as an SVG document. The same plan always gives the same bytes.

    Where there is room, a box shows the number of its micro-batch, from 1. Its times are in a tooltip. If
    there are many micro-batches, the middle ones are left out, because they all look alike.
    Raises SettingsError for plans with too many passes to hold in memory.
    """
    if plan.micro_batches * len(plan.stages) > MOST_DRAWN:
        raise SettingsError(
            f"the picture: {plan.micro_batches:,} micro-batches in {len(plan.stages)} stages, at most "
            f"{MOST_DRAWN:,} of both are drawn; draw a plan of fewer micro-batches, its middle looks the same"
        )
    events = simulate_update(plan)
    axis = Axis(plan, events)
    width, height = axis.right_end + _RIGHT, _TOP + _ROW * len(plan.stages) + 46
    parts = [
        f"<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 {width} {height}' width='{width}' "
        f"height='{height}' role='img' {_FONT} font-size='12'>",
        f"<title>{escape(_format_title(plan))}</title>",
        f"<rect width='{width}' height='{height}' fill='white'/>",
        _draw_text(16, 26, _format_title(plan), size=16, bold=True),
        _draw_text(16, 46, _format_subtitle(plan, events), colour="#555"),
        *_draw_legend({event.kind for event in events}),
        *_draw_rows(plan, axis),
        *_draw_ticks(axis, _TOP + _ROW * len(plan.stages)),
        *(box for event in events for box in _draw_boxes(event, axis)),
        *_draw_gap(axis, len(plan.stages)),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def _format_title(plan: Plan) -> str:
    """Return the title of the picture, with the numbers of stages, copies and micro-batches."""
    stages = f"{len(plan.stages)} stage{'s' * (len(plan.stages) > 1)}"
    copies = f"{plan.copies} {'copy' if plan.copies == 1 else 'copies'}"
    batches = f"{plan.micro_batches:,} micro-batch{'es' * (plan.micro_batches > 1)}"
    return f"One update: {stages} x {copies}, {batches} of {plan.batch_size:,} sequences"


def _format_subtitle(plan: Plan, events: Sequence[Event]) -> str:
    """Return the line below the title, with an update's sequences and time, and the share of idle time."""
    end = max(event.end for event in events)
    idle = f"{compute_idle_fraction(events, len(plan.stages)):.1%} of the time of the passes is idle"
    time = f"{format_four_digits(end * 1e3)} ms"
    return (
        f"{plan.examples:,} sequences of {plan.sequence_length} ids in {time}; {idle}; "
        f"{plan.precision}, times are forecast"
    )


def _draw_legend(kinds: Collection[str]) -> Iterator[str]:
    """Yield the boxes and texts of the legend.

    kinds: the kinds of events that occur in the timeline.
    """
    x = _LEFT
    for kind, name in _LEGEND:
        if kind in (*kinds, None):
            colour = _COLOURS[kind][0] if kind else _IDLE
            yield f"<rect x='{x}' y='62' width='14' height='14' fill='{colour}'/>"
            yield _draw_text(x + 19, 73, name)
            x += 37 + 6 * len(name)


def _draw_rows(plan: Plan, axis: Axis) -> Iterator[str]:
    """Yield each stage's label and the background of its row, visible where the stage is idle."""
    for number, stage in enumerate(plan.stages):
        y = _TOP + _ROW * number
        layers = f"layer{'s' * (len(stage.layers) > 1)} {format_layers(stage)}"
        devices = f"device{'s' * (plan.copies > 1)} {format_devices(plan, number)}"
        yield _draw_text(16, y + 11, f"stage {number}", bold=True)
        yield _draw_text(16, y + 22.5, layers, size=10, colour="#555")
        yield _draw_text(16, y + 33, devices, size=10, colour="#555")
        for start, end in axis.spans:
            x, right = axis.find_pixel(start), axis.find_pixel(end)
            yield f"<rect x='{x:.2f}' y='{y}' width='{right - x:.2f}' height='{_BAR}' fill='{_IDLE}'/>"


def _draw_boxes(event: Event, axis: Axis) -> Iterator[str]:
    """Yield the boxes of an event. An event that lies in two spans has a box in each."""
    y = _TOP + _ROW * event.stage
    number = event.micro_batch
    colour = _COLOURS[event.kind][(number or 0) % 2]
    for start, end in axis.cut_to_spans(event.start, event.end):
        x, width = axis.find_pixel(start), axis.find_pixel(end) - axis.find_pixel(start)
        line = " stroke='white' stroke-width='0.6'" if width > 3 else ""
        yield (
            f"<rect x='{x:.2f}' y='{y}' width='{width:.2f}' height='{_BAR}' fill='{colour}'{line}>"
            f"<title>{escape(_format_tooltip(event))}</title></rect>"
        )
        label = "" if number is None or event.kind in (SEND, RECEIVE) else str(number + 1)
        size = min(12.0, (width - 1) / (0.62 * len(label))) if label else 0
        if size >= 6:
            middle = x + width / 2
            yield _draw_text(
                middle, y + _BAR / 2 + size * 0.36, label, size=size, colour="white", middle=True
            )


def _format_tooltip(event: Event) -> str:
    """Return the text of an event's tooltip."""
    of = "" if event.micro_batch is None else f" of micro-batch {event.micro_batch + 1}"
    times = f"{event.start * 1e3:,.2f} to {event.end * 1e3:,.2f} ms"
    return f"stage {event.stage}, {event.kind}{of}: {times}, {event.seconds * 1e3:,.2f} ms"


def _draw_ticks(axis: Axis, y: float) -> Iterator[str]:
    """Yield the lines and labels of the time axis."""
    for start, end in axis.spans:
        x, right = axis.find_pixel(start), axis.find_pixel(end)
        yield f"<line x1='{x:.2f}' y1='{y}' x2='{right:.2f}' y2='{y}' stroke='#888'/>"
    for seconds in axis.list_ticks():
        x = axis.find_pixel(seconds)
        yield f"<line x1='{x:.2f}' y1='{_TOP}' x2='{x:.2f}' y2='{y}' stroke='#999' stroke-opacity='0.35'/>"
        yield f"<line x1='{x:.2f}' y1='{y}' x2='{x:.2f}' y2='{y + 5}' stroke='#888'/>"
        yield _draw_text(x, y + 18, f"{seconds * 1e3:,.10g}", size=11, colour="#333", middle=True)
    middle = (_LEFT + axis.right_end) / 2
    yield _draw_text(middle, y + 36, "ms from the start of the update", colour="#333", middle=True)


def _draw_gap(axis: Axis, stages: int) -> Iterator[str]:
    """Yield the words in the gap where micro-batches are left out."""
    if axis.left_out:
        x = (axis.find_pixel(axis.spans[0][1]) + axis.find_pixel(axis.spans[1][0])) / 2
        y = _TOP + (_ROW * (stages - 1) + _BAR) / 2
        words = (f"{axis.left_out:,} micro-batches", "as on both sides,", "left out")
        for line, part in enumerate(words, -1):
            yield _draw_text(x, y + 4 + 13 * line, part, size=11, colour="#333", middle=True)


def _draw_text(
    x: float,
    y: float,
    words: str,
    *,
    size: float = 12,
    colour: str = "#000",
    bold: bool = False,
    middle: bool = False,
) -> str:
    """Return an SVG element for a text.

    middle: whether the text is centred at ``x``. Otherwise it begins there.
    """
    more = " text-anchor='middle'" * middle + ' font-weight="bold"' * bold
    return (
        f"<text x='{x:.2f}' y='{y:.2f}' font-size='{size:.4g}' fill='{colour}'{more}>{escape(words)}</text>"
    )
