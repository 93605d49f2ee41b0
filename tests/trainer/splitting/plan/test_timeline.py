"""The timeline of an update: its order, its end, and what each pass waits for."""

from itertools import pairwise
from random import Random

import pytest

from tests.support.plans import make_plan, make_stage
from trainer.splitting.plan.plan import Plan
from trainer.splitting.plan.request import Mesh
from trainer.splitting.plan.timeline import (
    ALL_REDUCE,
    BACKWARD,
    FORWARD,
    RECEIVE,
    SEND,
    STEP,
    Event,
    compute_idle_fraction,
    list_passes,
    simulate_update,
)


def uneven_plan(stages: int, micro_batches: int) -> Plan:
    """Stages of different times, which transfer to their neighbours."""
    random = Random(stages * 100 + micro_batches)
    made = [
        make_stage(number, forward=random.uniform(0.1, 0.4), transfer=0.05 * (number < stages - 1))
        for number in range(stages)
    ]
    return make_plan(made, micro_batches=micro_batches)


UNEVEN = [uneven_plan(stages, batches) for stages in (1, 2, 3, 8) for batches in (1, 2, 7, 16)]


def passes(events: list[Event]) -> dict[tuple[str, int, int], Event]:
    return {(one.kind, one.stage, one.micro_batch): one for one in events if one.micro_batch is not None}


def test_the_order_of_passes_is_1f1b():
    def words(stage: int) -> str:
        return " ".join(f"{kind[0]}{number}" for kind, number in list_passes(stage, 3, 4))

    assert words(0) == "f0 f1 f2 b0 f3 b1 b2 b3"
    assert words(1) == "f0 f1 b0 f2 b1 f3 b2 b3"
    assert words(2) == "f0 b0 f1 b1 f2 b2 f3 b3"


def test_fewer_micro_batches_than_stages_all_go_forward_first():
    gpipe = [(FORWARD, 0), (FORWARD, 1), (BACKWARD, 0), (BACKWARD, 1)]
    assert all(list_passes(stage, 8, 2) == gpipe for stage in range(8))


@pytest.mark.parametrize("stages", [1, 2, 4, 16])
@pytest.mark.parametrize("micro_batches", [1, 2, 8, 32])
def test_equal_stages_take_the_time_of_the_plans_formula(stages, micro_batches):
    plan = make_plan(stages, micro_batches=micro_batches)
    events = simulate_update(plan)
    assert max(event.end for event in events) == plan.seconds
    assert plan.seconds == (stages + micro_batches - 1) * 0.75 + 0.5 + 0.125
    assert compute_idle_fraction(events, stages) == pytest.approx(plan.bubble, abs=1e-12)


@pytest.mark.parametrize("plan", UNEVEN)
def test_uneven_stages_take_the_time_of_the_formula_to_a_tenth(plan):
    assert max(event.end for event in simulate_update(plan)) == pytest.approx(plan.seconds, rel=0.1)


@pytest.mark.parametrize("plan", UNEVEN)
def test_a_stage_does_one_thing_at_a_time(plan):
    events = simulate_update(plan)
    for number in range(len(plan.stages)):
        own = sorted((one for one in events if one.stage == number), key=lambda one: one.start)
        assert all(before.end <= after.start + 1e-12 for before, after in pairwise(own))


@pytest.mark.parametrize("plan", UNEVEN)
def test_every_pass_is_there_once_for_its_forecast_time(plan):
    done = passes(events := simulate_update(plan))
    assert len(done) == len([one for one in events if one.micro_batch is not None])
    for number, stage in enumerate(plan.stages):
        for batch in range(plan.micro_batches):
            assert done[FORWARD, number, batch].seconds == pytest.approx(stage.forward)
            assert done[BACKWARD, number, batch].seconds == pytest.approx(stage.backward)
    ways = 2 * plan.micro_batches * (len(plan.stages) - 1)
    assert len([one for one in events if one.kind in (SEND, RECEIVE)]) == ways


@pytest.mark.parametrize("plan", UNEVEN)
def test_a_pass_waits_for_what_its_neighbour_sends(plan):
    done = passes(simulate_update(plan))
    last = len(plan.stages) - 1
    for batch in range(plan.micro_batches):
        assert done[FORWARD, last, batch].end <= done[BACKWARD, last, batch].start
        for number in range(last):
            sent = done[SEND, number, batch]
            assert done[FORWARD, number, batch].end <= sent.start
            assert sent.end <= done[FORWARD, number + 1, batch].start
            received = done[RECEIVE, number, batch]
            assert done[BACKWARD, number + 1, batch].end <= received.start
            assert received.end <= done[BACKWARD, number, batch].start


@pytest.mark.parametrize("plan", UNEVEN)
def test_as_many_micro_batches_are_under_way_as_the_plans_memory_counts(plan):
    done = passes(simulate_update(plan))
    stages = len(plan.stages)
    mesh = Mesh(stages, plan.copies, plan.micro_batches, plan.batch_size)
    for number in range(stages):
        starts = [done[FORWARD, number, batch].start for batch in range(plan.micro_batches)]
        ends = [done[BACKWARD, number, batch].end for batch in range(plan.micro_batches)]
        most = max(sum(end > start for end in ends[: count + 1]) for count, start in enumerate(starts))
        assert most == mesh.count_in_flight(stages - number)


@pytest.mark.parametrize("plan", UNEVEN)
def test_the_step_waits_for_every_stages_gradients(plan):
    events = simulate_update(plan)
    ends = {one.stage: one.end for one in passes(events).values() if one.kind == BACKWARD}
    reduced = [one for one in events if one.kind == ALL_REDUCE]
    assert {one.stage: one.start for one in reduced} == ends
    steps = [one for one in events if one.kind == STEP]
    assert len(steps) == len(plan.stages)
    assert {one.start for one in steps} == {max(one.end for one in reduced)}
