"""Masked blocks: the kernel equals the specification, and what holds of every block."""

from array import array
from collections import Counter
from itertools import accumulate, chain, pairwise
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bertdata import _native
from bertdata.config.dialects import DIALECTS
from bertdata.errors import SettingsError
from bertdata.examples.masking.prepared_settings import find_role_ids
from bertdata.examples.masking.settings import SPECIAL_ROLES
from bertdata.examples.mlm.batch import MlmBatch, MlmExample
from bertdata.examples.mlm.blocks import BREAKS
from bertdata.examples.mlm.make import make_blocks
from bertdata.examples.mlm.reference import cut_text_blocks
from bertdata.examples.mlm.settings import MlmSettings
from bertdata.records import Documents, Vocabulary
from tests.support.strategies import large_vocabulary, parse_vocabulary, small_vocabulary, tries

needs_kernels = pytest.mark.skipif(not _native.available(), reason="the kernels are not built")

VOCABULARY = small_vocabulary(DIALECTS["mlperf"])
SPECIAL = find_role_ids(VOCABULARY, SPECIAL_ROLES)

lengths = st.one_of(st.integers(0, 8), st.integers(0, 30), st.integers(1, 400))
shapes = st.lists(st.lists(lengths, max_size=8), max_size=6)
shares = st.sampled_from(
    [(0.8, 0.1, 0.1), (1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0), (0.5, 0.25, 0.25)]
)


@st.composite
def mlm_settings(draw: st.DrawFn) -> MlmSettings:
    """Any settings of masked blocks; mostly short ones."""
    length = draw(st.one_of(st.integers(5, 24), st.integers(5, 64), st.integers(5, 1024)))
    mask, random, kept = draw(shares)
    masks = draw(st.sampled_from([True, True, True, False]))
    return MlmSettings(
        blocks=draw(st.sampled_from(BREAKS)),
        max_seq_length=length,
        max_predictions_per_seq=draw(st.one_of(st.just(0), st.integers(1, length))),
        dupe_factor=draw(st.integers(1, 3)) if masks else 1,
        random_seed=draw(st.one_of(st.integers(0, 100), st.integers(-(1 << 200), 1 << 200))),
        masked_lm_prob=draw(st.one_of(st.floats(1e-9, 1), st.sampled_from([0.15, 0.3, 1.0]))),
        mask_share=mask,
        random_share=random,
        kept_share=kept,
        whole_word_mask=draw(st.booleans()),
        masks=masks,
    )


def make_odd_documents(shape: list[list[int]], vocabulary: Vocabulary, seed: int) -> Documents:
    """Documents of any ids, special ones among them; a sentence or a document may be empty."""
    sizes = list(chain.from_iterable(shape))
    return Documents(
        ids=array(
            "I" if vocabulary.wide else "H", Random(seed).choices(vocabulary.replacements, k=sum(sizes))
        ),
        sentence_ends=array("I", accumulate(sizes)),
        document_ends=array("I", accumulate(map(len, shape))),
    )


@st.composite
def cases(draw: st.DrawFn) -> tuple[Documents, MlmSettings]:
    documents = make_odd_documents(draw(shapes), VOCABULARY, draw(st.integers(0, 1 << 30)))
    return documents, draw(mlm_settings())


def columns(batch: MlmBatch) -> dict[str, tuple[int, list[int]]]:
    """Each column's item size and items."""
    views = {column.name: memoryview(getattr(batch, column.name)) for column in batch.columns()}
    return {name: (view.itemsize, view.tolist()) for name, view in views.items()}


def assert_engines_agree(documents: Documents, vocabulary: Vocabulary, settings: MlmSettings) -> None:
    native, python = (make_blocks(documents, vocabulary, settings, engine) for engine in ("native", "python"))
    assert len(native) == len(python)
    assert (native.tokens, native.masked) == (python.tokens, python.masked)
    assert columns(native.batch(0, len(native))) == columns(python.batch(0, len(python)))


@needs_kernels
@tries(4)
@given(cases())
def test_engines_make_the_same_blocks(case):
    documents, settings = case
    assert_engines_agree(documents, VOCABULARY, settings)


@pytest.fixture(scope="module")
def wide_vocabulary() -> Vocabulary:
    return parse_vocabulary(large_vocabulary(), "large", DIALECTS["mlperf"])


@needs_kernels
@given(settings=mlm_settings(), shape=shapes, seed=st.integers(0, 1 << 30))
def test_engines_make_the_same_blocks_of_32_bit_ids(wide_vocabulary, settings, shape, seed):
    assert_engines_agree(make_odd_documents(shape, wide_vocabulary, seed), wide_vocabulary, settings)


@needs_kernels
@given(cases(), st.integers(0, 40), st.integers(0, 60), st.integers(1, 7))
def test_engines_cut_the_same_batches(case, start, stop, step):
    documents, settings = case
    native, python = (make_blocks(documents, VOCABULARY, settings, engine) for engine in ("native", "python"))
    whole = list(python.batch(0, len(python)).examples())
    cut = python.batch(start, stop, step)
    assert columns(native.batch(start, stop, step)) == columns(cut)
    assert list(cut.examples()) == whole[start:stop:step]


# What holds of every block


def unmasked(example: MlmExample) -> list[int]:
    ids = list(example.ids)
    for position, label in zip(example.positions, example.labels, strict=True):
        ids[position] = label
    return ids


def made(documents: Documents, settings: MlmSettings) -> list[MlmExample]:
    source = make_blocks(documents, VOCABULARY, settings, "python")
    return list(source.batch(0, len(source)).examples())


def body_of(documents: Documents) -> list[int]:
    """The text with the end of each sentence that has ids."""
    bounds = pairwise([0, *documents.sentence_ends])
    return [token for a, b in bounds if a < b for token in (*documents.ids[a:b], VOCABULARY.sep)]


@given(cases())
def test_the_blocks_of_a_pass_are_the_whole_text(case):
    documents, settings = case
    blocks = cut_text_blocks(documents, VOCABULARY, settings.blocks, settings.max_seq_length)
    assert all(block[0] == VOCABULARY.cls for block in blocks)
    assert all(2 <= len(block) <= settings.max_seq_length for block in blocks)
    text = [token for block in blocks for token in block[1:]]
    left_out = Counter(body_of(documents)) - Counter(text)
    assert not Counter(text) - Counter(body_of(documents))
    assert set(left_out) <= {VOCABULARY.sep}  # where a block would be nothing else
    for_each_pass = Counter(map(tuple, blocks * settings.dupe_factor))
    assert Counter(tuple(unmasked(example)) for example in made(documents, settings)) == for_each_pass


@given(cases())
def test_whole_sentences_are_cut_only_where_one_is_too_long(case):
    documents, settings = case
    longest = max((b - a for a, b in pairwise([0, *documents.sentence_ends])), default=0) + 1
    if settings.blocks != "none" and longest < settings.max_seq_length:
        for block in cut_text_blocks(documents, VOCABULARY, settings.blocks, settings.max_seq_length):
            assert block[-1] == VOCABULARY.sep


@given(cases())
def test_special_ids_are_never_masked_and_no_more_than_wanted(case):
    documents, settings = case
    for example in made(documents, settings):
        assert example.positions == sorted(set(example.positions))
        assert not SPECIAL & set(example.labels)
        assert len(example.positions) <= settings.layout.max_predictions_per_seq
        if settings.masks and not settings.whole_word_mask:
            original = unmasked(example)
            candidates = sum(token not in SPECIAL for token in original)
            wanted = max(1, round(len(original) * settings.masked_lm_prob))
            assert len(example.positions) == min(candidates, wanted, settings.most_masks)


# Masks of many blocks


def long_text(seed: int = 1) -> Documents:
    return make_odd_documents([[20] * 12 for _ in range(150)], VOCABULARY, seed)


def masked_pairs(documents: Documents, **settings: Any) -> list[tuple[int, int]]:
    """What stands at each masked position, and the original."""
    found = made(documents, MlmSettings(max_seq_length=128, **settings))
    pairs = [
        zip(map(example.ids.__getitem__, example.positions), example.labels, strict=True) for example in found
    ]
    return list(chain.from_iterable(pairs))


def test_masked_ids_are_replaced_in_the_shares_asked_for():
    """Within five standard deviations; a random token is [MASK] or the original once in 37."""
    for mask, random, kept in ((0.8, 0.1, 0.1), (0.5, 0.3, 0.2)):
        pairs = masked_pairs(long_text(), mask_share=mask, random_share=random, kept_share=kept)
        token = random / len(VOCABULARY.replacements)
        for share, found in (
            (mask + token, sum(shown == VOCABULARY.mask for shown, _ in pairs)),
            (kept + token, sum(shown == label for shown, label in pairs)),
        ):
            assert abs(found - share * len(pairs)) < 5 * (share * (1 - share) * len(pairs)) ** 0.5
    assert len(pairs) > 4_000


def test_every_position_behind_the_first_is_as_likely_masked():
    documents = make_odd_documents([[126]] * 2_000, VOCABULARY, 3)
    plain = [token for token in VOCABULARY.replacements if token not in SPECIAL]
    ids = array("H", Random(5).choices(plain, k=len(documents.ids)))
    documents = Documents(
        ids=ids, sentence_ends=documents.sentence_ends, document_ends=documents.document_ends
    )
    positions = [p for example in made(documents, MlmSettings(max_seq_length=128)) for p in example.positions]
    counts = np.bincount(positions, minlength=128)
    assert counts[0] == counts[127] == 0
    expected = len(positions) / 126
    chi_squared = ((counts[1:127] - expected) ** 2 / expected).sum()
    assert chi_squared < 125 + 5 * (2 * 125) ** 0.5


def test_passes_seeds_and_texts_have_masks_of_their_own():
    """Two sets of masks of the same blocks share as many positions as chance has it, about 15 %."""
    documents, other = long_text(), long_text(2)
    settings = MlmSettings(max_seq_length=128, blocks="none")

    def masks(documents: Documents, **changes: Any) -> list[set[int]]:
        """By block, in the order of the text."""
        chosen = settings.with_changes(**changes)
        numbered = {
            tuple(block): n for n, block in enumerate(cut_text_blocks(documents, VOCABULARY, "none", 128))
        }
        found: dict[int, list[set[int]]] = {}
        for example in made(documents, chosen):
            found.setdefault(numbered[tuple(unmasked(example))], []).append(set(example.positions))
        return [sets[-1] for _, sets in sorted(found.items())]

    first = masks(documents)
    assert first == masks(documents)
    for second in (masks(documents, random_seed=7), masks(other), masks(documents, random_seed=-12345)):
        shared = sum(len(a & b) for a, b in zip(first, second, strict=True)) / sum(map(len, first))
        assert 0.1 < shared < 0.2
    twice = made(documents, settings.with_changes(dupe_factor=2))
    by_block: dict[tuple[int, ...], set[tuple[int, ...]]] = {}
    for example in twice:
        by_block.setdefault(tuple(unmasked(example)), set()).add(tuple(example.positions))
    assert {len(positions) for positions in by_block.values()} == {2}


def test_the_masks_of_a_block_do_not_depend_on_other_settings():
    """Those of the first pass are the same, whatever the number of passes."""
    documents = long_text()

    def masked(passes: int) -> set[tuple[int, ...]]:
        settings = MlmSettings(max_seq_length=128, dupe_factor=passes)
        return {(*example.ids, *example.positions) for example in made(documents, settings)}

    one, three = masked(1), masked(3)
    assert one < three


# Settings


def test_as_many_masks_as_the_rate_asks_of_a_full_block():
    assert MlmSettings().layout.max_predictions_per_seq == 77
    wide = MlmSettings(max_seq_length=1024, masked_lm_prob=0.3)
    assert wide.layout.max_predictions_per_seq == 307
    assert wide.as_json()["max_predictions_per_seq"] == 307
    assert MlmSettings(max_predictions_per_seq=20).layout.max_predictions_per_seq == 20


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"blocks": "all"}, "blocks is 'all', expected one of none, complete, complete_doc, eos"),
        ({"max_predictions_per_seq": 513}, "max_predictions_per_seq is 513, expected 1 to max_seq_length"),
        ({"dupe_factor": 0}, "dupe_factor is 0, expected 1 or more"),
        (
            {"dupe_factor": 2, "masks": False},
            "dupe_factor is 2, expected 1: without masks all passes are alike",
        ),
        ({"masked_lm_prob": 0.0}, "masked_lm_prob is 0, expected a share above 0, at most 1"),
        ({"kept_share": 0.3}, "their sum is 1.2, expected 1"),
    ],
)
def test_settings_that_make_no_sense_are_refused(changes, message):
    with pytest.raises(SettingsError, match=message):
        MlmSettings(**changes)
