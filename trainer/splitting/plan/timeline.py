"""The timeline of an update by a plan: the passes of each stage's micro-batches at their forecast times.

Each stage makes its passes in the order 1F1B (Narayanan et al. 2019): stage s of S first makes the forward
passes of S - s micro-batches, then a backward and a forward pass in turn, then the backward passes that are
left. Fewer micro-batches than stages all go forward before the first goes backward (GPipe, Huang et al.
2019).
"""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

from bertdata.errors import SettingsError
from trainer.splitting.plan.plan import Plan, StagePlan

FORWARD, BACKWARD, SEND, RECEIVE = "forward", "backward", "send", "receive"
ALL_REDUCE, STEP = "all-reduce", "step"
"""Kinds of events: passes; activations to the next stage, gradients from it; the end of the update."""


MOST_PASSES = 1 << 20
"""The most passes forward of an update whose timeline is computed, in some seconds."""


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


def pass_order(stage: int, stages: int, micro_batches: int) -> list[tuple[str, int]]:
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
    if plan.micro_batches * count > MOST_PASSES:
        raise SettingsError(
            f"{plan.micro_batches:,} micro-batches in {count} stages are too many for a timeline, expected "
            f"at most {MOST_PASSES // count:,}"
        )
    waiting = [deque(pass_order(stage, count, plan.micro_batches)) for stage in range(count)]
    done: list[list[Event]] = [[] for _ in range(count)]
    # Ends of passes with their transfers; the inputs are there from the start.
    ends = {(-1, FORWARD, number): 0.0 for number in range(plan.micro_batches)}
    while any(waiting):
        for stage, order in enumerate(waiting):
            while order and (ready := ends.get(_before(stage, count, *order[0]))) is not None:
                kind, number = order.popleft()
                start = max(ready, done[stage][-1].end if done[stage] else 0.0)
                done[stage] += _events(plan.stages[stage], stage, kind, number, start)
                ends[stage, kind, number] = done[stage][-1].end
    return done


def _before(stage: int, count: int, kind: str, number: int) -> tuple[int, str, int]:
    """The pass that makes the inputs of a pass: stage, kind and micro-batch."""
    if kind == FORWARD:
        return stage - 1, FORWARD, number
    return (stage + 1, BACKWARD, number) if stage < count - 1 else (stage, FORWARD, number)


def _events(plan: StagePlan, stage: int, kind: str, number: int, start: float) -> list[Event]:
    """A pass and its transfer, from ``start`` on."""
    way, is_forward = plan.transfer / 2, kind == FORWARD
    first, second = (plan.forward, way) if is_forward else (way, plan.backward)
    kinds = (FORWARD, SEND) if is_forward else (RECEIVE, BACKWARD)
    middle, end = start + first, start + (first + second)
    return [Event(kinds[0], stage, start, middle, number), Event(kinds[1], stage, middle, end, number)]


def idle_fraction(events: Sequence[Event], stages: int) -> float:
    """The fraction of the stages' time between the first and the last pass in which they wait."""
    passes = [event for event in events if event.micro_batch is not None]
    span = max(event.end for event in passes)
    return 1 - sum(event.seconds for event in passes) / (stages * span)
