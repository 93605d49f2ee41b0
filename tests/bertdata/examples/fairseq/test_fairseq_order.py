"""Seeds of fairseq's masks, its order of examples, its batches."""

import hashlib
import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bertdata.errors import SettingsError
from bertdata.examples.fairseq.batch_order import fairseq_batches, order_by_length
from bertdata.examples.fairseq.seeds import compute_seed, compute_seeds, hash_tuple
from bertdata.examples.fairseq.streams import TwisterStream
from bertdata.examples.mlm.blocks import cut_blocks
from tests.support.encoders_kit import oracle


def test_hashes_and_seeds_are_those_of_python(encoders):
    cases = json.loads((encoders / "fairseq" / "seeds.json").read_text())
    for case in cases:
        assert hash_tuple(case["of"]) == int(case["hash"]), case
        assert compute_seed(*case["of"]) == case["seed"], case
        if len(case["of"]) == 3:
            seed, epoch, example = case["of"]
            found = compute_seeds(seed, epoch, np.array([example], np.uint64))
            assert found.tolist() == [case["seed"]], case
    assert len(cases) >= 50


@given(st.integers(-(2**70), 2**70), st.integers(0, 2**63), st.lists(st.integers(0, 2**61 - 2), max_size=20))
def test_seeds_of_many_examples_are_those_of_each(seed, epoch, examples):
    found = compute_seeds(seed, epoch, np.array(examples, np.uint64)).tolist()
    assert found == [compute_seed(seed, epoch, example) for example in examples]


@given(
    st.lists(st.integers(-(2**70), 2**70) | st.sampled_from([-1, -2, 2**61 - 1, -(2**61), 2**61]), max_size=5)
)
def test_the_hash_is_this_interpreters(numbers):
    """CPython 3.8 and later on 64 bits, which is where these tests run."""
    assert hash_tuple(numbers) == hash(tuple(numbers))


def test_seeds_are_coarse():
    """A defect of the original that is kept: FACTS has 19,739 seeds of 200,000 blocks."""
    assert len(np.unique(compute_seeds(1, 1, np.arange(200_000, dtype=np.uint64)))) < 20_000


def test_every_order_is_fairseqs(lines, encoders):
    cases = oracle(encoders / "fairseq" / "blocks.json")
    for case, wanted in cases.items():
        text, tokens, breaks, length = case.split("__")
        ended = [len(line) + 1 for line in lines[f"{text}__{tokens}"]]
        spans = list(cut_blocks(ended, breaks, int(length) - 1))
        lengths = [1 + end - start for start, end in spans]
        for seed, md5 in wanted["order_md5"].items():
            order = order_by_length(lengths, int(seed)).astype("<i8")
            assert hashlib.md5(order.tobytes(), usedforsecurity=False).hexdigest() == md5, (case, seed)
    assert len(cases) == 36


def test_a_permutation_is_numpys():
    """NumPy guarantees this stream."""
    for seed in (0, 1, 2**32 - 1):
        expected = np.random.RandomState(seed).permutation(700).tolist()
        assert TwisterStream(seed).permutation(700) == expected


@given(
    st.lists(st.integers(1, 40), min_size=1, max_size=120),
    st.sampled_from([1, 3, 8, 16]),
    st.integers(1, 4),
)
def test_batches_of_all_ranks_are_the_order_cut_shuffled_and_dealt(lengths, batch_size, world):
    dealt = [
        fairseq_batches(lengths, seed=5, epoch=2, batch_size=batch_size, rank=rank, world=world)
        for rank in range(world)
    ]
    assert len({len(batches) for batches in dealt}) == 1
    order = order_by_length(lengths, 5).tolist()
    cut = [order[start : start + batch_size] for start in range(0, len(order), batch_size)]
    shuffled = list(np.random.RandomState(7).permutation(len(cut)))
    joined = [dealt[place % world][place // world].tolist() for place in range(len(cut))]
    assert joined == [cut[place] for place in shuffled]
    assert sum(len(batch) for batches in dealt for batch in batches) == len(lengths)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"batch_size": 12}, "batch_size is 12, expected 1 to 8, or a multiple of 8"),
        ({"batch_size": 0}, "batch_size is 0, expected"),
        ({"rank": 2, "world": 2}, "rank is 2, expected 0 to 1"),
        ({"seed": -1}, "the seed of an order is -1, expected 0 to 4294967295"),
    ],
)
def test_batches_that_cannot_be_are_refused(changes, message):
    with pytest.raises(SettingsError, match=message):
        fairseq_batches([3, 4], **{"seed": 1, "epoch": 1, "batch_size": 8} | changes)
