"""Whole words where the ids do not tell where words start: documents and examples tell it by place."""

from array import array
from dataclasses import replace
from itertools import accumulate, chain
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bertdata import _native
from bertdata.config.dialects import DIALECTS
from bertdata.errors import SettingsError
from bertdata.examples.bert.batch import BertBatch, BertBatchOfWords
from bertdata.examples.bert.make import make_bert_examples
from bertdata.examples.bert.settings import BertSettings
from bertdata.examples.dynamic_masking.masker import Draws, make_masker
from bertdata.examples.groups import get_masks
from bertdata.examples.masking.prepared_settings import prepare_masking_rules
from bertdata.examples.masking.reference import words_of
from bertdata.examples.masking.settings import MaskingSettings
from bertdata.examples.mlm.batch import MlmBatch, MlmBatchOfWords
from bertdata.examples.mlm.make import make_blocks
from bertdata.examples.mlm.settings import MlmSettings
from bertdata.records import Documents, ExampleBatch, Vocabulary
from tests.support.strategies import (
    document_shapes,
    example_settings,
    large_vocabulary,
    make_documents,
    parse_vocabulary,
    small_vocabulary,
    tries,
)

needs_kernels = pytest.mark.skipif(not _native.available(), reason="the kernels are not built")
ENGINES = ("native", "python")

VOCABULARY = replace(small_vocabulary(DIALECTS["mlperf"]), continues_word=None)
CLS, SEP, MASK, UNK = (VOCABULARY.role(name) for name in ("cls", "sep", "mask", "unk"))
WHOLE = MaskingSettings(whole_word_mask=True, max_predictions_per_seq=20)


def with_starts(documents: Documents, seed: int) -> Documents:
    """The documents with a start of a word at every other id or so, anywhere in their sentences."""
    return replace(documents, word_starts=bytes(Random(seed).choices((0, 1), k=documents.tokens)))


def some_documents(lengths: list[list[int]], bits: list[int]) -> Documents:
    """Documents of the ids 5, 6, ... with these word starts."""
    sizes = list(chain.from_iterable(lengths))
    return Documents(
        ids=array("H", [5 + place % 20 for place in range(sum(sizes))]),
        sentence_ends=array("I", accumulate(sizes)),
        document_ends=array("I", accumulate(map(len, lengths))),
        word_starts=bytes(bits),
    )


def columns(batch: ExampleBatch) -> dict[str, tuple[int, list[int]]]:
    """Each column's item size and items."""
    views = {column.name: memoryview(getattr(batch, column.name)) for column in batch.columns()}
    return {name: (view.itemsize, view.tolist()) for name, view in views.items()}


def examples_of(source: Any) -> list[Any]:
    return list(source.batch(0, len(source)).examples())


def words_in(starts: list[int], special: set[int]) -> list[list[int]]:
    """The words of an example: from a start to the next, without special positions, which part them."""
    words: list[list[int]] = []
    for position, bit in enumerate(starts):
        if position in special:
            continue
        if bit or position - 1 in special or not position:
            words.append([])
        words[-1].append(position)
    return words


# Words of an example, literally


@pytest.mark.parametrize(
    ("ids", "starts", "words"),
    [
        ([CLS, 5, 6, 7, 8, SEP], [1, 1, 0, 1, 0, 1], [[1, 2], [3, 4]]),
        # what is left of a word whose start is not here is a word by itself
        ([CLS, 5, 6, 7, SEP], [1, 0, 0, 1, 1], [[1, 2], [3]]),
        # no word goes on behind a special id, wherever it comes from
        ([CLS, 5, SEP, 6, 7, SEP], [1, 1, 1, 0, 0, 1], [[1], [3, 4]]),
        ([5, UNK, 6, 7], [1, 0, 0, 1], [[0], [2], [3]]),
        # each id may be a word, and all may be one
        ([5, 6, 7], [1, 1, 1], [[0], [1], [2]]),
        ([5, 6, 7], [0, 0, 0], [[0, 1, 2]]),
        ([], [], []),
    ],
)
@pytest.mark.parametrize("joins_over_special", [False, True])
def test_words_run_from_a_start_to_the_next(ids, starts, words, joins_over_special):
    rules = prepare_masking_rules(VOCABULARY, replace(WHOLE, joins_over_special=joins_over_special))
    assert words_of(ids, rules, starts) == words


def test_without_whole_words_each_id_is_one_whatever_the_starts():
    rules = prepare_masking_rules(VOCABULARY, MaskingSettings())
    assert words_of([CLS, 5, 6, 7, SEP], rules, [1, 1, 0, 0, 1]) == [[1], [2], [3]]


# In create


@st.composite
def bert_cases(draw: st.DrawFn) -> tuple[Documents, Vocabulary, BertSettings]:
    settings = draw(example_settings())
    vocabulary = replace(small_vocabulary(settings.rules, doubled=draw(st.booleans())), continues_word=None)
    seed = draw(st.integers(0, 1 << 30))
    documents = make_documents(draw(document_shapes), vocabulary, settings.rules, seed)
    return with_starts(documents, seed), vocabulary, settings


@needs_kernels
@tries(4)
@given(bert_cases(), st.sampled_from([BertBatch, BertBatchOfWords]), st.integers(1, 3))
def test_engines_make_the_same_pairs(case, kind, step):
    native, python = (make_bert_examples(*case, engine, kind) for engine in ENGINES)
    assert (len(native), native.tokens, native.masked) == (len(python), python.tokens, python.masked)
    assert columns(native.batch(0, len(native), step)) == columns(python.batch(0, len(python), step))


block_shapes = st.lists(
    st.lists(st.one_of(st.integers(0, 8), st.integers(1, 90)), max_size=6), min_size=1, max_size=5
)
block_settings = st.builds(
    MlmSettings,
    max_seq_length=st.integers(5, 70),
    blocks=st.sampled_from(["none", "complete", "complete_doc", "eos"]),
    masked_lm_prob=st.sampled_from([0.15, 0.4, 1.0]),
    whole_word_mask=st.booleans(),
    dupe_factor=st.integers(1, 2),
)


@st.composite
def block_cases(draw: st.DrawFn) -> tuple[Documents, MlmSettings]:
    """Documents of any ids, special ones among them; a sentence may be empty."""
    seed, shape = draw(st.integers(0, 1 << 30)), draw(block_shapes)
    sizes = list(chain.from_iterable(shape))
    documents = Documents(
        ids=array("H", Random(seed).choices(VOCABULARY.replacements, k=sum(sizes))),
        sentence_ends=array("I", accumulate(sizes)),
        document_ends=array("I", accumulate(map(len, shape))),
    )
    return with_starts(documents, seed), draw(block_settings)


@needs_kernels
@tries(4)
@given(block_cases(), st.sampled_from([MlmBatch, MlmBatchOfWords]), st.integers(1, 3))
def test_engines_make_the_same_blocks(case, kind, step):
    documents, settings = case
    native, python = (make_blocks(documents, VOCABULARY, settings, engine, kind) for engine in ENGINES)
    assert (len(native), native.tokens, native.masked) == (len(python), python.tokens, python.masked)
    assert columns(native.batch(0, len(native), step)) == columns(python.batch(0, len(python), step))


@needs_kernels
@given(settings=block_settings, shape=block_shapes)
def test_engines_make_the_same_blocks_of_32_bit_ids(settings, shape):
    vocabulary = replace(
        parse_vocabulary(large_vocabulary(), "large", DIALECTS["mlperf"]), continues_word=None
    )
    documents = with_starts(make_documents(shape, vocabulary, DIALECTS["mlperf"], 3), 4)
    native, python = (make_blocks(documents, vocabulary, settings, one, MlmBatchOfWords) for one in ENGINES)
    assert columns(native.batch(0, len(native))) == columns(python.batch(0, len(python)))


def assert_whole(example: Any, starts: list[int]) -> None:
    """Each word of the example is masked whole, or not at all."""
    ids = list(example.ids)
    for position, label in zip(example.positions, example.labels, strict=True):
        ids[position] = label
    special = {position for position, token in enumerate(ids) if token in (CLS, SEP)}
    masked = set(example.positions)
    for word in words_in(starts, special):
        assert not masked & set(word) or masked >= set(word)


@pytest.mark.parametrize("engine", ENGINES)
def test_words_of_blocks_and_pairs_are_masked_whole(engine):
    bits = [int(place % 3 == 0) for place in range(300)]
    documents = some_documents([[20, 10, 30], [40, 50], [60, 90]], bits)
    blocks = MlmSettings(max_seq_length=24, blocks="none", whole_word_mask=True, masked_lm_prob=0.4)
    pairs = BertSettings(max_seq_length=40, max_predictions_per_seq=15, whole_word_mask=True)
    pairs = pairs.with_changes(masked_lm_prob=0.4)
    made = [
        *examples_of(make_blocks(documents, VOCABULARY, blocks, engine, MlmBatchOfWords)),
        *examples_of(make_bert_examples(documents, VOCABULARY, pairs, engine, BertBatchOfWords)),
    ]
    for example in made:
        assert_whole(example, example.word_starts)
    longest = max(
        len(word)
        for example in made
        for word in words_in(example.word_starts, set())
        if set(word) <= set(example.positions)
    )
    assert longest == 3  # whole words of several ids are masked at all


@pytest.mark.parametrize("engine", ENGINES)
def test_the_column_starts_words_at_special_ids_and_behind_them(engine):
    bits = [1, 0, 0, 0, 1, 0, 0]
    documents = some_documents([[4, 3]], bits)
    settings = MlmSettings(max_seq_length=8, blocks="none", masks=False)
    source = make_blocks(documents, VOCABULARY, settings, engine, MlmBatchOfWords)
    found = sorted((example.ids, example.word_starts) for example in examples_of(source))
    assert found == [
        ([CLS, 5, 6, 7, 8, SEP, 9, 10], [1, 1, 0, 0, 0, 1, 1, 0]),
        ([CLS, 11, SEP], [1, 1, 1]),  # the block begins inside a word
    ]


@pytest.mark.parametrize("engine", ENGINES)
def test_pairs_and_blocks_without_whole_words_do_not_depend_on_the_starts(engine):
    documents = some_documents([[20, 30], [25]], [1, 0, 0] * 25)
    plain = replace(documents, word_starts=None)
    blocks, pairs = MlmSettings(max_seq_length=32), BertSettings(max_seq_length=32, max_predictions_per_seq=5)
    for make, settings in ((make_blocks, blocks), (make_bert_examples, pairs)):
        found = [examples_of(make(one, VOCABULARY, settings, engine)) for one in (documents, plain)]
        assert found[0] == found[1]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    ("make", "settings", "kind"),
    [
        (make_blocks, MlmSettings(whole_word_mask=True), MlmBatch),
        (make_blocks, MlmSettings(masks=False), MlmBatchOfWords),
        (make_bert_examples, BertSettings(whole_word_mask=True), BertBatch),
        (make_bert_examples, BertSettings(masks=False), BertBatchOfWords),
    ],
)
def test_documents_without_starts_are_refused_where_they_are_needed(make, settings, kind, engine):
    documents = replace(some_documents([[4, 3]], [1] * 7), word_starts=None)
    with pytest.raises(SettingsError, match="^generated: its documents do not tell where words start$"):
        make(documents, VOCABULARY, settings, engine, kind)


@needs_kernels
@pytest.mark.parametrize("starts", [bytes(6), bytes(8), array("H", [1] * 7)])
def test_the_kernels_refuse_starts_that_are_not_a_byte_for_each_id(starts):
    documents = replace(some_documents([[4, 3]], [1] * 7), word_starts=starts)
    for make, settings in (
        (make_blocks, MlmSettings(whole_word_mask=True)),
        (make_bert_examples, BertSettings(whole_word_mask=True)),
    ):
        with pytest.raises(ValueError, match="^word_starts: expected a"):
            make(documents, VOCABULARY, settings, "native")


# At load


def load_settings(**changes: Any) -> MaskingSettings:
    return replace(WHOLE, **changes)


def draws_of(count: int, rate: float = 0.15) -> Draws:
    return Draws(
        keys=np.full(count, 7, np.uint64),
        numbers=np.arange(count, dtype=np.uint64),
        rates=np.full(count, rate),
    )


rows_of_words = st.lists(
    st.lists(st.tuples(st.integers(0, VOCABULARY.size - 1), st.integers(0, 1)), max_size=120), max_size=5
)


def batch_of(rows: list[list[tuple[int, int]]]) -> MlmBatchOfWords:
    none = np.zeros(0, np.uint32)
    return MlmBatchOfWords(
        ids=np.array([token for row in rows for token, _ in row], np.uint32),
        ends=np.cumsum([len(row) for row in rows], dtype=np.uint32),
        positions=none.astype(np.uint16),
        labels=none,
        mask_ends=np.zeros(len(rows), np.uint32),
        word_starts=np.array([bit for row in rows for _, bit in row], np.uint8),
    )


@needs_kernels
@tries(4)
@given(
    rows_of_words,
    st.builds(load_settings, mask_counts=st.sampled_from(["fixed", "drawn"]), whole_word_mask=st.booleans()),
    st.sampled_from([0.15, 0.4, 1.0]),
)
def test_masks_of_the_kernel_at_load_are_the_twins(rows, settings, rate):
    found = [
        make_masker(VOCABULARY, settings, engine).mask_batch(batch_of(rows), draws_of(len(rows), rate))
        for engine in ENGINES
    ]
    assert columns(found[0]) == columns(found[1])


@pytest.mark.parametrize("engine", ENGINES)
def test_masks_at_load_are_of_the_whole_words_that_the_column_tells(engine):
    bits = [int(place % 3 == 0) for place in range(300)]
    documents = some_documents([[20, 10, 30], [40, 50], [60, 90]], bits)
    settings = MlmSettings(max_seq_length=24, blocks="none", masks=False)
    source = make_blocks(documents, VOCABULARY, settings, engine, MlmBatchOfWords)
    batch = source.batch(0, len(source))
    made = make_masker(VOCABULARY, WHOLE, engine).mask_batch(batch, draws_of(len(batch), 0.4))
    assert len(get_masks(made).places) > 40
    for example in made.examples():
        assert_whole(example, example.word_starts)


@pytest.mark.parametrize("engine", ENGINES)
def test_word_starts_that_ids_tell_and_those_by_place_draw_the_same(engine):
    """A WordPiece's masks at load do not change where its examples hold word starts too."""
    wordpiece = small_vocabulary(DIALECTS["mlperf"])
    rows = [[(token, 1 - wordpiece.continues_word[token]) for token in range(5, 37)] * 3]
    by_place = batch_of(rows)
    by_id = MlmBatch(**{c.name: getattr(by_place, c.name) for c in MlmBatch.columns()})
    masker = make_masker(wordpiece, WHOLE, engine)
    found = [masker.mask_batch(one, draws_of(1, 0.3)) for one in (by_place, by_id)]
    assert get_masks(found[0]).places.tolist() == get_masks(found[1]).places.tolist() != []
