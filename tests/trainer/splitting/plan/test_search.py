"""The search of stages beside its exhaustive twin."""

import itertools

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from trainer.splitting.plan.search import NOT_ALLOWED, Choice, Search

KINDS = 2


def every_division(layers, stages, fits):
    """All allowed divisions: stages as (kind, first, last)."""
    for cuts in itertools.combinations(range(1, layers), stages - 1):
        bounds = list(itertools.pairwise((0, *cuts, layers)))
        for kinds in itertools.product(range(KINDS), repeat=stages):
            division = [(kind, *bound) for kind, bound in zip(kinds, bounds, strict=True)]
            if all(fits(stages - place)[stage] for place, stage in enumerate(division)):
                yield division


def seconds(division, busy, end, micro_batches):
    times = [busy[stage] for stage in division]
    return sum(times) + (micro_batches - 1) * max(times) + max(end[stage] for stage in division)


@st.composite
def cases(draw):
    layers = draw(st.integers(1, 8))
    stages = draw(st.integers(1, min(4, layers)))
    shape = (KINDS, layers + 1, layers + 1)
    generator = np.random.default_rng(draw(st.integers(0, 2**32)))
    most = draw(st.sampled_from((2, 10, 10**6)))
    busy, end = generator.integers(0, most, shape), generator.integers(0, most, shape)
    is_stage = np.triu(np.ones(shape[1:], dtype=bool), 1)
    allowed = [
        is_stage & (generator.random(shape) < draw(st.sampled_from((0.5, 0.9, 1.0)))) for _ in range(stages)
    ]
    return layers, stages, draw(st.sampled_from((1, 2, 3, 8, 32))), busy, end, allowed


@settings(max_examples=150, deadline=None)
@given(cases())
def test_the_search_equals_a_search_of_all_divisions(case):
    layers, stages, micro_batches, busy, end, allowed = case

    def fits(left):
        return allowed[left - 1]

    every = list(every_division(layers, stages, fits))
    found = Search(busy, end, allowed, micro_batches).best()
    if not every:
        assert found is None
        return
    least = min(seconds(division, busy, end, micro_batches) for division in every)
    assert list(map(tuple, found.choices)) in [list(division) for division in every]
    assert seconds(found.choices, busy, end, micro_batches) == least
    assert found.passes(micro_batches) + found.end == least


@settings(max_examples=50, deadline=None)
@given(cases())
def test_the_bound_is_exclusive(case):
    _, _, micro_batches, busy, end, allowed = case
    search = Search(busy, end, allowed, micro_batches)
    found = search.best()
    if found is not None:
        least = found.passes(micro_batches) + found.end
        assert search.best(least) is None
        assert search.best(least + 1) == found


def uniform(layers, stages):
    places = np.arange(layers + 1)
    busy = np.maximum(places[None, :] - places[:, None], 0)[None] * 10
    is_stage = np.triu(np.ones(busy.shape[1:], dtype=bool), 1)[None]
    return Search(busy, np.zeros_like(busy), [is_stage] * stages, 8)


def test_equal_layers_are_divided_evenly():
    found = uniform(8, 4).best()
    assert found.choices == tuple(Choice(0, first, first + 2) for first in (0, 2, 4, 6))
    lengths = [last - first for _, first, last in uniform(10, 4).best().choices]
    assert sorted(lengths) == [2, 2, 3, 3]


def test_a_search_of_96_layers_takes_few_dynamic_programs():
    search = uniform(96, 64)
    assert search.best() is not None
    assert search.solutions < 10


def test_no_division_has_more_stages_than_layers():
    assert uniform(2, 3).best() is None
    assert uniform(2, 3).find_bottleneck(np.zeros((1, 3, 3), dtype=np.int64), NOT_ALLOWED) is None
