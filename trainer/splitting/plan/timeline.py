"""The timeline of an update: when each stage computes and sends, if everything takes as
long as the plan says.

Each stage works in the order 1F1B (Narayanan et al. 2019). Stage s of S stages first makes the forward
passes of S - s micro-batches. Then it alternates a backward and a forward pass, and at the end it makes
the remaining backward passes. With fewer micro-batches than stages, all forward passes come first
(GPipe, Huang et al. 2018).
"""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

from bertdata.errors import SettingsError
from trainer.splitting.plan.plan import Plan, StagePlan

FORWARD, BACKWARD, SEND, RECEIVE = "forward", "backward", "send", "receive"
ALL_REDUCE, STEP = "all-reduce", "step"
"""The kinds of events in a timeline.

A stage makes forward and backward passes, sends activations to the next stage and receives their gradients.
An update ends with an all-reduce and the optimiser's step.
"""


MOST_PASSES = 1 << 20
"""Largest number of forward passes for which a timeline is computed.

Computing a timeline with this number of passes takes some seconds.
"""


@dataclass(frozen=True, slots=True)
class Event:
    """Action of a stage from ``start`` to ``end``, which are in seconds since the update's first pass."""

    kind: str
    stage: int
    start: float
    end: float
    micro_batch: int | None = None  # None for the all-reduce and the optimiser's step

    @property
    def seconds(self) -> float:
        """Duration of the event in seconds."""
        return self.end - self.start


def list_passes(stage: int, stages: int, micro_batches: int) -> list[tuple[str, int]]:
    """Return the passes of a stage in their order, as pairs of FORWARD or BACKWARD and the
    micro-batch's number.
    """
    ahead = stages - stage if micro_batches >= stages else micro_batches
    # For example, with 2 stages and 3 micro-batches, stage 0 makes F0 F1 B0 F2 B1 B2 and stage 1 makes F0 B0
    # F1 B1 F2 B2 (F: forward, B: backward).
    order = [(FORWARD, number) for number in range(ahead)]
    for number in range(micro_batches):
        order.append((BACKWARD, number))
        if number + ahead < micro_batches:
            order.append((FORWARD, number + ahead))
    return order


def simulate_update(plan: Plan) -> list[Event]:
    """Return the events of an update with this plan.

    The events of a stage are in the order of time. A transfer between two stages is listed for the earlier
    stage, which sends the activations and later receives their gradients. Each direction takes half of
    ``StagePlan.transfer``. The all-reduce starts after the stage's last pass. The optimiser's steps start
    when the last all-reduce has ended, because clipping needs the norm of all gradients.
    """
    passes = _schedule_passes(plan)
    events = [event for stage in passes for event in stage]
    sums = [
        Event(ALL_REDUCE, number, done[-1].end, done[-1].end + stage.all_reduce)
        for number, (stage, done) in enumerate(zip(plan.stages, passes, strict=True))
    ]
    last = max(event.end for event in sums)
    steps = [Event(STEP, number, last, last + stage.step) for number, stage in enumerate(plan.stages)]
    return [event for event in (*events, *sums, *steps) if event.seconds > 0]


def _schedule_passes(plan: Plan) -> list[list[Event]]:
    """Return for each stage its passes and transfers as events."""
    count = len(plan.stages)
    if plan.micro_batches * count > MOST_PASSES:
        raise SettingsError(
            f"{plan.micro_batches:,} micro-batches in {count} stages are too many for a timeline, expected "
            f"at most {MOST_PASSES // count:,}"
        )
    waiting = [deque(list_passes(stage, count, plan.micro_batches)) for stage in range(count)]
    done: list[list[Event]] = [[] for _ in range(count)]
    # ``ends`` holds the time at which each pass, including the transfer of its output, has ended. Stage 0 has
    # no input to wait for, so an imaginary stage -1 supplies its input at time 0.
    ends = {(-1, FORWARD, number): 0.0 for number in range(plan.micro_batches)}
    # Let each stage make the passes whose inputs are ready, in its fixed order, until no pass is left.
    while any(waiting):
        for stage, order in enumerate(waiting):
            while order and (ready := ends.get(_find_input_pass(stage, count, *order[0]))) is not None:
                kind, number = order.popleft()
                start = max(ready, done[stage][-1].end if done[stage] else 0.0)
                done[stage] += _make_events(plan.stages[stage], stage, kind, number, start)
                ends[stage, kind, number] = done[stage][-1].end
    return done


def _find_input_pass(stage: int, count: int, kind: str, number: int) -> tuple[int, str, int]:
    """Return the pass whose output is this pass's input, as stage, FORWARD or BACKWARD, and micro-batch.

    stage: stage of this pass.
    count: number of stages.
    kind: FORWARD or BACKWARD.
    number: number of the micro-batch.
    """
    if kind == FORWARD:
        return stage - 1, FORWARD, number
    return (stage + 1, BACKWARD, number) if stage < count - 1 else (stage, FORWARD, number)


def _make_events(plan: StagePlan, stage: int, kind: str, number: int, start: float) -> list[Event]:
    """Return two events: a pass that begins at ``start``, and the transfer of its output.

    stage: index of the stage.
    kind: FORWARD or BACKWARD.
    number: number of the micro-batch.
    """
    way, is_forward = plan.transfer / 2, kind == FORWARD
    first, second = (plan.forward, way) if is_forward else (way, plan.backward)
    kinds = (FORWARD, SEND) if is_forward else (RECEIVE, BACKWARD)
    middle, end = start + first, start + (first + second)
    return [Event(kinds[0], stage, start, middle, number), Event(kinds[1], stage, middle, end, number)]


def compute_idle_fraction(events: Sequence[Event], stages: int) -> float:
    """Return the share of the stages' time in which they wait, between the first and the last pass.

    stages: number of stages.
    """
    passes = [event for event in events if event.micro_batch is not None]
    span = max(event.end for event in passes)
    return 1 - sum(event.seconds for event in passes) / (stages * span)
