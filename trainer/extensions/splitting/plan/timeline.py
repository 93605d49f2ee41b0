"""The timeline of an update by a plan: the passes of each stage's micro-batches at their forecast times.

Each stage makes its passes in the order 1F1B (Narayanan et al. 2019): stage s of S first makes the forward
passes of S - s micro-batches, then a backward and a forward pass in turn, then the backward passes that are
left. Fewer micro-batches than stages all go forward before the first goes backward (GPipe, Huang et al.
2019).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from trainer.extensions.splitting.plan.plan import Plan, StagePlan

FORWARD, BACKWARD, SEND, RECEIVE = "forward", "backward", "send", "receive"
ALL_REDUCE, STEP = "all-reduce", "step"
"""Kinds of events: passes; activations to the next stage, gradients from it; the end of the update."""

_Pass = tuple[str, int]


@dataclass(frozen=True, slots=True)
class Event:
    """One action of a stage, from ``start`` to ``end`` (seconds from the update's first pass)."""

    kind: str
    stage: int
    start: float
    end: float
    micro_batch: int | None = None  # None: of the whole update

    @property
    def seconds(self) -> float:
        return self.end - self.start


def pass_order(stage: int, stages: int, micro_batches: int) -> list[_Pass]:
    """(FORWARD or BACKWARD, micro-batch) of each pass of a stage, in the order 1F1B or GPipe's."""
    ahead = stages - stage if micro_batches >= stages else micro_batches
    order = [(FORWARD, number) for number in range(ahead)]
    for number in range(micro_batches):
        order.append((BACKWARD, number))
        if number + ahead < micro_batches:
            order.append((FORWARD, number + ahead))
    return order


def simulate(plan: Plan) -> list[Event]:
    """The events of an update, those of each stage one after another.

    A transfer keeps the stage busy that it is counted for: the one that sends the activations and waits for
    their gradients; each way takes half of ``StagePlan.transfer``. The all-reduce follows the stage's last
    pass; the optimiser's steps begin when the last all-reduce has ended, as clipping needs all gradients.
    """
    passes = _passes(plan)
    events = [event for stage in passes for event in stage]
    sums = [
        Event(ALL_REDUCE, number, done[-1].end, done[-1].end + stage.all_reduce)
        for number, (stage, done) in enumerate(zip(plan.stages, passes, strict=True))
    ]
    last = max(event.end for event in sums)
    steps = [Event(STEP, number, last, last + stage.step) for number, stage in enumerate(plan.stages)]
    return [event for event in (*events, *sums, *steps) if event.seconds > 0]


def _passes(plan: Plan) -> list[list[Event]]:
    """The passes and transfers of each stage."""
    count = len(plan.stages)
    waiting = [pass_order(stage, count, plan.micro_batches) for stage in range(count)]
    done: list[list[Event]] = [[] for _ in range(count)]
    ends: dict[tuple[int, str, int], float] = {}  # of a pass with its transfer
    while any(waiting):
        for stage, order in enumerate(waiting):
            while order and (ready := _ready(stage, count, order[0], ends)) is not None:
                kind, number = order.pop(0)
                start = max(ready, done[stage][-1].end if done[stage] else 0.0)
                done[stage] += _events(plan.stages[stage], stage, kind, number, start)
                ends[stage, kind, number] = done[stage][-1].end
    return done


def _ready(stage: int, count: int, one: _Pass, ends: dict[tuple[int, str, int], float]) -> float | None:
    """The time from which the pass has its inputs, or None if its neighbour's pass is not placed yet."""
    kind, number = one
    if kind == FORWARD:
        return ends.get((stage - 1, FORWARD, number)) if stage else 0.0
    if stage == count - 1:
        return ends[stage, FORWARD, number]
    return ends.get((stage + 1, BACKWARD, number))


def _events(plan: StagePlan, stage: int, kind: str, number: int, start: float) -> list[Event]:
    """A pass and its transfer, from ``start`` on."""
    way = plan.transfer / 2
    if kind == FORWARD:
        kinds, times = (FORWARD, SEND), (plan.forward, way)
    else:
        kinds, times = (RECEIVE, BACKWARD), (way, plan.backward)
    limits = (start, start + times[0], start + sum(times))
    return [
        Event(name, stage, begin, end, number)
        for name, (begin, end) in zip(kinds, pairwise(limits), strict=True)
    ]


def idle_fraction(events: Sequence[Event], stages: int) -> float:
    """The fraction of the stages' time between the first and the last pass in which they wait."""
    passes = [event for event in events if event.micro_batch is not None]
    span = max(event.end for event in passes)
    return 1 - sum(event.seconds for event in passes) / (stages * span)
