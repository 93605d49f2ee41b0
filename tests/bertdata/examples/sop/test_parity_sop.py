"""ALBERT's examples: the kernel equals the specification, and what holds of every example."""

from array import array
from collections import Counter
from dataclasses import replace
from itertools import accumulate, pairwise
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bertdata import _native
from bertdata.config.dialects import DIALECTS
from bertdata.errors import SettingsError
from bertdata.examples.counting import compute_sizes
from bertdata.examples.groups import get_masks
from bertdata.examples.objectives import find_objective
from bertdata.examples.random_stream import NumpyStream
from bertdata.examples.sop.batch import SopBatch, SopExample
from bertdata.examples.sop.make import make_sop_examples
from bertdata.examples.sop.ngrams import NgramLengths
from bertdata.examples.sop.settings import SopSettings
from bertdata.records import Documents, Vocabulary
from tests.support.strategies import (
    document_shapes,
    large_vocabulary,
    parse_vocabulary,
    probabilities,
    seeds,
    share_settings,
    small_vocabulary,
    tries,
)

needs_kernels = pytest.mark.skipif(not _native.available(), reason="the kernels are not built")

VOCABULARY = small_vocabulary(DIALECTS["mlperf"])
CLS, SEP, MASK = (VOCABULARY.role(name) for name in ("cls", "sep", "mask"))
BY_PLACE = replace(VOCABULARY, continues_word=None)


@st.composite
def sop_settings(draw: st.DrawFn) -> SopSettings:
    """Any settings of the objective; mostly short examples."""
    length = draw(st.one_of(st.integers(8, 24), st.integers(8, 64), st.integers(8, 1024)))
    permutation = draw(st.booleans())
    return SopSettings(
        max_seq_length=length,
        max_predictions_per_seq=draw(st.integers(2 if permutation else 1, length)),
        dupe_factor=draw(st.integers(1, 3)),
        random_seed=draw(seeds),
        masked_lm_prob=draw(probabilities),
        short_seq_prob=draw(probabilities),
        random_next_sentence=draw(st.booleans()),
        ngram=draw(st.one_of(st.integers(1, 4), st.integers(1, 64))),
        favor_shorter_ngram=draw(st.booleans()),
        whole_word_mask=draw(st.booleans()),
        permutation=permutation,
        masks=draw(st.sampled_from([True, True, False])),
        **draw(share_settings()),
    )


def odd_documents(shape: list[list[int]], vocabulary: Vocabulary, seed: int) -> Documents:
    """Documents of any ids, [CLS] and [SEP] among them, with word starts where the ids do not tell them."""
    sizes, random = [size for document in shape for size in document], Random(seed)
    ids = random.choices(vocabulary.replacements, k=sum(sizes))
    by_place = vocabulary.continues_word is None
    return Documents(
        ids=array("I" if vocabulary.wide else "H", ids),
        sentence_ends=array("I", accumulate(sizes)),
        document_ends=array("I", accumulate(map(len, shape))),
        word_starts=bytes(random.choices((0, 1), k=len(ids))) if by_place else None,
    )


@st.composite
def cases(draw: st.DrawFn) -> tuple[Documents, Vocabulary, SopSettings]:
    vocabulary = draw(st.sampled_from([VOCABULARY, BY_PLACE]))
    documents = odd_documents(draw(document_shapes), vocabulary, draw(st.integers(0, 1 << 30)))
    return documents, vocabulary, draw(sop_settings())


def columns(batch: SopBatch) -> dict[str, tuple[int, list[int]]]:
    """Each column's item size and items."""
    views = {column.name: memoryview(getattr(batch, column.name)) for column in batch.columns()}
    return {name: (view.itemsize, view.tolist()) for name, view in views.items()}


def made(documents: Documents, vocabulary: Vocabulary, settings: SopSettings) -> list[SopExample]:
    source = make_sop_examples(documents, vocabulary, settings, "python")
    return list(source.batch(0, len(source)).examples())


def unmasked(example: SopExample) -> list[int]:
    ids = list(example.ids)
    for position, label in zip(example.positions, example.labels, strict=True):
        ids[position] = label
    return ids


def assert_engines_agree(documents: Documents, vocabulary: Vocabulary, settings: SopSettings) -> None:
    native, python = (make_sop_examples(documents, vocabulary, settings, one) for one in ("native", "python"))
    assert (len(native), native.tokens, native.masked) == (len(python), python.tokens, python.masked)
    assert columns(native.batch(0, len(native))) == columns(python.batch(0, len(python)))
    assert columns(native.batch(1, 50, 3)) == columns(python.batch(1, 50, 3))


@needs_kernels
@tries(4)
@given(cases())
def test_engines_make_the_same_examples(case):
    assert_engines_agree(*case)


@pytest.fixture(scope="module")
def wide_vocabulary() -> Vocabulary:
    return parse_vocabulary(large_vocabulary(), "large", DIALECTS["mlperf"])


@needs_kernels
@given(settings=sop_settings(), shape=document_shapes, seed=st.integers(0, 1 << 30))
def test_engines_make_the_same_examples_of_32_bit_ids(wide_vocabulary, settings, shape, seed):
    assert_engines_agree(odd_documents(shape, wide_vocabulary, seed), wide_vocabulary, settings)


# What holds of every example


@given(cases())
def test_an_example_is_two_spans_of_the_text_with_their_word_starts(case):
    documents, vocabulary, settings = case
    text = list(documents.ids)
    if documents.word_starts is None:
        starts = [1 - vocabulary.continues_word[token] for token in text]
    else:
        starts = list(documents.word_starts)
    starts = [1 if token in (CLS, SEP) else bit for token, bit in zip(text, starts, strict=True)]
    for example in made(documents, vocabulary, settings):
        ids, bits, first = unmasked(example), example.word_starts, example.first_length
        assert len(bits) == len(ids) <= settings.max_seq_length
        assert (ids[0], ids[first - 1], ids[-1]) == (CLS, SEP, SEP)
        assert bits[0] == bits[first - 1] == bits[-1] == 1
        for a, b in ((1, first - 1), (first, len(ids) - 1)):
            assert any(
                text[i : i + b - a] == ids[a:b] and starts[i : i + b - a] == bits[a:b]
                for i in range(len(text))
            )


@given(cases())
def test_cls_and_sep_are_never_masked_and_no_more_than_wanted(case):
    documents, vocabulary, settings = case
    for example in made(documents, vocabulary, settings):
        assert example.positions == sorted(set(example.positions))
        assert not {CLS, SEP} & set(example.labels)
        assert len(example.positions) <= settings.most_masks(len(example.ids))
        assert len(example.positions) <= settings.max_predictions_per_seq
        assert settings.masked_lm_prob or not example.positions
        assert settings.masks or not example.positions


@given(cases())
def test_no_masks_leaves_out_the_labels_and_nothing_else(case):
    documents, vocabulary, settings = case
    masked = made(documents, vocabulary, settings.with_changes(masks=True))
    bare = made(documents, vocabulary, settings.with_changes(masks=False))
    assert [unmasked(example) for example in masked] == [example.ids for example in bare]
    assert [(one.word_starts, one.order_label) for one in masked] == [
        (one.word_starts, one.order_label) for one in bare
    ]


# Literal pairs


def numbered(*documents: list[int]) -> Documents:
    """Documents of sentences of these lengths; each id is another plain word, in order."""
    sizes = [size for document in documents for size in document]
    plain = [token for token in range(VOCABULARY.size) if VOCABULARY.words[token].startswith("w")]
    return Documents(
        ids=array("H", plain[: sum(sizes)]),
        sentence_ends=array("I", accumulate(sizes)),
        document_ends=array("I", accumulate(map(len, documents))),
    )


def test_half_of_the_pairs_are_swapped_and_say_so():
    documents = numbered([3, 4])
    a, b = list(documents.ids[:3]), list(documents.ids[3:])
    settings = SopSettings(max_seq_length=32, dupe_factor=400, masks=False, short_seq_prob=0)
    found = Counter((tuple(one.ids), one.order_label) for one in made(documents, VOCABULARY, settings))
    kept, swapped = (CLS, *a, SEP, *b, SEP), (CLS, *b, SEP, *a, SEP)
    assert set(found) == {(kept, 0), (swapped, 1)}
    assert 150 < found[swapped, 1] < 250


def test_one_sentence_gets_a_random_second_and_the_label_1():
    documents = numbered([3], [4])
    settings = SopSettings(max_seq_length=32, dupe_factor=3, masks=False)
    found = made(documents, VOCABULARY, settings)
    assert {one.order_label for one in found} == {1}
    assert {tuple(one.ids) for one in found} == {
        (CLS, *documents.ids[:3], SEP, *documents.ids[3:], SEP),
        (CLS, *documents.ids[3:], SEP, *documents.ids[:3], SEP),
    }


def test_random_next_sentences_are_drawn_as_berts_are():
    """The same pairs as of the objective bert, but for the masks' draws, of which both have none here."""
    documents = odd_documents([[5, 9, 3, 8], [4, 4, 7], [6, 2]], VOCABULARY, 3)
    settings = SopSettings(max_seq_length=24, random_next_sentence=True, masked_lm_prob=0, dupe_factor=20)
    labels = Counter(one.order_label for one in made(documents, VOCABULARY, settings))
    assert 0.4 < labels[1] / labels.total() < 0.75


# N-grams


@pytest.mark.parametrize("favors_shorter", [True, False])
@pytest.mark.parametrize("longest", [2, 3, 10])
def test_lengths_of_ngrams_have_their_probabilities(longest, favors_shorter):
    settings = SopSettings(ngram=longest, favor_shorter_ngram=favors_shorter)
    lengths, draws = NgramLengths(settings.ngram_limits, NumpyStream(settings.ngram_seed).random), 30_000
    counts = Counter(lengths.draw() for _ in range(draws))
    weights = [1 / n for n in range(1, longest + 1)][:: 1 if favors_shorter else -1]
    expected = [draws * weight / sum(weights) for weight in weights]
    chi_squared = sum((counts[n] - share) ** 2 / share for n, share in enumerate(expected, 1))
    assert counts.total() == draws == sum(counts[n] for n in range(1, longest + 1))
    assert chi_squared < longest + 5 * (2 * longest) ** 0.5


@pytest.mark.parametrize("favors_shorter", [True, False])
def test_examples_have_the_ngrams_that_are_drawn(favors_shorter):
    """Three masks of 512 words: the first n-gram stands as it is drawn, and few touch another."""
    documents = Documents(
        ids=array("H", [VOCABULARY.words.index("w3")] * 200_000),
        sentence_ends=array("I", range(50, 200_001, 50)),
        document_ends=array("I", [2000, 4000]),
    )
    settings = SopSettings(
        max_seq_length=512, masked_lm_prob=0.006, dupe_factor=8, favor_shorter_ngram=favors_shorter
    )
    source = make_sop_examples(documents, VOCABULARY, settings.with_changes(short_seq_prob=0.0))
    masks = get_masks(source.batch(0, len(source)))
    places = [tuple(masks.places[start : start + 3]) for start in range(0, len(masks.places), 3)]
    assert set(compute_sizes(list(masks.ends))) == {3}
    counts = Counter((b - a == 1) + (c - b == 1) for a, b, c in places)
    # Neighbours: two in 3; one in 2 and 1, or in 1 and 2 or a shortened 3; none in 1, 1 and 1.
    one, two, three = (6 / 11, 3 / 11, 2 / 11) if favors_shorter else (2 / 11, 3 / 11, 6 / 11)
    expected = {2: three, 1: two + one * (two + three), 0: one**2}
    chi_squared = sum(
        (counts[n] - share * len(places)) ** 2 / (share * len(places)) for n, share in expected.items()
    )
    assert len(places) > 2_500
    assert chi_squared < 30, (counts, expected)


def test_ngrams_are_whole_words_where_the_documents_tell_them():
    documents = odd_documents([[40] * 30], BY_PLACE, 7)
    settings = SopSettings(max_seq_length=128, dupe_factor=10, ngram=2)
    for example in made(documents, BY_PLACE, settings):
        taken = set(example.positions)
        ids = unmasked(example)
        for before, position in pairwise(range(1, len(ids))):
            if not example.word_starts[position] and not {CLS, SEP} & {ids[before], ids[position]}:
                assert (before in taken) == (position in taken)


def test_permuted_ids_are_those_of_the_other_positions():
    """Nothing is masked for real where the ids are kept: what changes is the order of the other positions."""
    documents = odd_documents([[40] * 30], VOCABULARY, 7)
    settings = SopSettings(
        max_seq_length=128,
        max_predictions_per_seq=38,
        dupe_factor=3,
        permutation=True,
        mask_share=0.0,
        random_share=0.0,
        kept_share=1.0,
    )
    moved = 0
    for example in made(documents, VOCABULARY, settings):
        shown = [example.ids[position] for position in example.positions]
        assert sorted(shown) == sorted(example.labels)
        assert len(shown) <= 38
        moved += sum(a != b for a, b in zip(shown, example.labels, strict=True))
    assert moved > 300


# Settings


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"ngram": 0}, "ngram is 0, expected 1 to 64"),
        ({"ngram": 65}, "ngram is 65, expected 1 to 64"),
        ({"max_predictions_per_seq": 0}, "max_predictions_per_seq is 0, expected 1 to max_seq_length"),
        ({"max_predictions_per_seq": 1, "permutation": True}, "expected 2 to max_seq_length"),
        ({"dupe_factor": 0}, "dupe_factor is 0, expected 1 or more"),
        ({"short_seq_prob": 1.5}, "short_seq_prob is 1.5, expected a probability"),
        ({"kept_share": 0.3}, "their sum is 1.2, expected 1"),
    ],
)
def test_settings_that_make_no_sense_are_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(SettingsError, match=message):
        SopSettings(**changes)


@pytest.mark.parametrize("engine", ["native", "python"])
def test_a_tokeniser_that_does_not_tell_words_is_refused(engine):
    documents = replace(odd_documents([[5, 5]], BY_PLACE, 1), word_starts=None)
    with pytest.raises(SettingsError, match="sop needs a tokeniser that tells where words start"):
        make_sop_examples(documents, BY_PLACE, SopSettings(), engine)


def test_documents_of_single_sentences_are_warned_about():
    warnings = find_objective("sop").warnings
    assert "every document is a single sentence" in warnings(numbered([3], [4]), "x")[0]
    assert warnings(numbered([3, 2], [4]), "x") == []
