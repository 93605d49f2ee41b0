"""Random stream and examples: the kernel equals the specification, the specification equals CPython."""

from itertools import pairwise
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bertdata import _native
from bertdata._native import kernels
from bertdata.config.dialects import DIALECTS
from bertdata.examples.bert.batch import BertBatch, BertExample
from bertdata.examples.bert.make import make_bert_examples
from bertdata.examples.bert.settings import BertSettings
from bertdata.examples.masking.mask_count import compute_masks_wanted
from bertdata.examples.random_stream import RandomStream, make_seed_key
from bertdata.records import Documents, Vocabulary
from bertdata.tokens.vocabulary import parse_vocabulary
from bertdata.tokens.wordpiece import tokenize_text
from tests.support.strategies import (
    document_shapes,
    example_settings,
    large_vocabulary,
    make_documents,
    seeds,
    small_vocabulary,
    texts,
    tries,
    vocabularies,
)

needs_kernels = pytest.mark.skipif(not _native.available(), reason="the kernels are not built")

# From mt19937ar.out, which Matsumoto and Nishimura publish with their program.
PUBLISHED_KEY = [0x123, 0x234, 0x345, 0x456]
PUBLISHED_OUTPUTS = [1067595299, 955945823, 477289528, 4107218783, 4228976476]


# The random stream


def native_stream(seed: int):
    return kernels.RandomStream(make_seed_key(seed))


def as_seed(key: list[int]) -> int:
    return sum(digit << 32 * place for place, digit in enumerate(key))


def test_a_seed_is_a_key_of_32_bit_digits():
    assert make_seed_key(as_seed(PUBLISHED_KEY)) == PUBLISHED_KEY
    assert make_seed_key(0) == [0]
    assert make_seed_key(-(2**32)) == [0, 1]


@needs_kernels
def test_the_kernel_gives_the_published_outputs():
    stream = kernels.RandomStream(PUBLISHED_KEY)
    # Below 2**32 - 1 takes all 32 bits of an output, and rejects only the highest of all outputs.
    assert [stream.below(2**32 - 1) for _ in PUBLISHED_OUTPUTS] == PUBLISHED_OUTPUTS


def test_the_specification_gives_the_published_outputs():
    stream = RandomStream(as_seed(PUBLISHED_KEY))
    assert [stream.below(2**32 - 1) for _ in PUBLISHED_OUTPUTS] == PUBLISHED_OUTPUTS


def test_a_random_double_is_two_published_outputs():
    a, b = PUBLISHED_OUTPUTS[:2]
    expected = ((a >> 5) * 2**26 + (b >> 6)) / 2**53
    assert RandomStream(as_seed(PUBLISHED_KEY)).random() == expected
    if _native.available():
        assert kernels.RandomStream(PUBLISHED_KEY).random() == expected


@tries(4)
@given(seeds, st.lists(st.one_of(st.none(), st.integers(1, 2**32 - 1), st.integers(1, 70)), max_size=40))
def test_every_draw_equals_cpythons_own(seed, limits):
    ours, cpython = RandomStream(seed), Random(seed)
    for limit in limits:
        if limit is None:
            assert ours.random() == cpython.random()
        else:
            assert ours.randint(5, limit + 4) == cpython.randint(5, limit + 4)


@tries(4)
@given(seeds, st.integers(0, 300))
def test_a_shuffle_equals_cpythons_own(seed, count):
    ours, cpythons = list(range(count)), list(range(count))
    RandomStream(seed).shuffle(ours)
    Random(seed).shuffle(cpythons)
    assert ours == cpythons


@needs_kernels
@tries(4)
@given(seeds, st.lists(st.one_of(st.none(), st.integers(1, 2**32 - 1), st.integers(1, 70)), max_size=700))
def test_every_draw_of_the_kernel_equals_the_specifications(seed, limits):
    native, python = native_stream(seed), RandomStream(seed)
    for limit in limits:
        if limit is None:
            assert native.random() == python.random()
        else:
            assert native.below(limit) == python.below(limit)


@needs_kernels
@tries(4)
@given(seeds, st.lists(st.one_of(st.integers(0, 40), st.integers(0, 1500)), max_size=5))
def test_a_shuffle_of_the_kernel_equals_the_specifications(seed, counts):
    native, python = native_stream(seed), RandomStream(seed)
    for count in counts:  # one after another: where a shuffle leaves the stream counts too
        expected = list(range(count))
        python.shuffle(expected)
        assert native.shuffle(list(range(count))) == expected
        assert native.random() == python.random()


# Examples


def columns(batch: BertBatch) -> dict[str, tuple[int, list[int]]]:
    """Each column's item size and items."""
    views = {name: memoryview(getattr(batch, name)) for name in (column.name for column in batch.columns())}
    return {name: (view.itemsize, view.tolist()) for name, view in views.items()}


def assert_engines_agree(documents: Documents, vocabulary: Vocabulary, settings: BertSettings) -> int:
    native = make_bert_examples(documents, vocabulary, settings, engine="native")
    python = make_bert_examples(documents, vocabulary, settings, engine="python")
    assert (len(native), native.tokens, native.masked) == (len(python), python.tokens, python.masked)
    assert columns(native.batch(0, len(native))) == columns(python.batch(0, len(python)))
    return len(native)


@st.composite
def documents_with_settings(draw: st.DrawFn) -> tuple[Documents, Vocabulary, BertSettings]:
    settings = draw(example_settings())
    vocabulary = small_vocabulary(settings.rules, doubled=draw(st.booleans()))
    documents = make_documents(
        draw(document_shapes), vocabulary, settings.rules, draw(st.integers(0, 1 << 30))
    )
    return documents, vocabulary, settings


@needs_kernels
@tries(8)
@given(documents_with_settings())
def test_engines_make_the_same_examples(case):
    assert_engines_agree(*case)


@needs_kernels
@tries(2)
@given(st.data(), texts(), example_settings())
def test_engines_make_the_same_examples_of_text(data, text, settings):
    vocabulary = parse_vocabulary(data.draw(vocabularies(text)), "generated", settings.rules)
    documents = tokenize_text(text, vocabulary, settings.rules, lower_case=settings.lower_case)
    assert_engines_agree(documents, vocabulary, settings)


@pytest.fixture(scope="module")
def wide_vocabularies() -> dict[str, Vocabulary]:
    return {name: parse_vocabulary(large_vocabulary(), "large", rules) for name, rules in DIALECTS.items()}


@needs_kernels
@given(settings=example_settings(), shape=document_shapes, seed=st.integers(0, 1 << 30))
def test_engines_make_the_same_examples_of_32_bit_ids(wide_vocabularies, settings, shape, seed):
    vocabulary = wide_vocabularies[settings.dialect]
    documents = make_documents(shape, vocabulary, settings.rules, seed)
    assert_engines_agree(documents, vocabulary, settings)


@needs_kernels
@given(documents_with_settings(), st.integers(0, 40), st.integers(0, 60), st.integers(1, 7))
def test_engines_cut_the_same_batches(case, start, stop, step):
    native, python = (make_bert_examples(*case, engine=engine) for engine in ("native", "python"))
    whole = list(python.batch(0, len(python)).examples())
    cut = python.batch(start, stop, step)
    assert columns(native.batch(start, stop, step)) == columns(cut)
    assert list(cut.examples()) == whole[start:stop:step]


@needs_kernels
def test_a_text_without_documents_makes_no_examples():
    for rules in DIALECTS.values():
        vocabulary = small_vocabulary(rules)
        nothing = tokenize_text(b"\n \n\0\n", vocabulary, rules)
        assert assert_engines_agree(nothing, vocabulary, BertSettings(dialect=rules.name)) == 0


# What holds of every example, whatever the engine


def unmasked(example: BertExample) -> list[int]:
    ids = list(example.ids)
    for position, label in zip(example.positions, example.labels, strict=True):
        ids[position] = label
    return ids


def candidates(example: BertExample, vocabulary: Vocabulary) -> list[int]:
    ids = unmasked(example)
    return [place for place, token in enumerate(ids) if token not in (vocabulary.cls, vocabulary.sep)]


@pytest.fixture(scope="module", params=["native", "python"])
def engine(request) -> str:
    if request.param == "native" and not _native.available():
        pytest.skip("the kernels are not built")
    return request.param


def made(case: tuple[Documents, Vocabulary, BertSettings], engine: str) -> list[BertExample]:
    source = make_bert_examples(*case, engine=engine)
    return list(source.batch(0, len(source)).examples())


@given(case=documents_with_settings())
def test_an_example_is_cls_text_sep_text_sep_and_no_longer_than_allowed(engine, case):
    documents, vocabulary, settings = case
    text = list(documents.ids)
    runs = {tuple(text[i:j]) for i in range(len(text)) for j in (i + 1, i + 2)}
    for example in made(case, engine):
        ids, first = unmasked(example), example.first_length
        assert len(ids) <= settings.max_seq_length
        assert 3 <= first <= len(ids) - 2
        assert (ids[0], ids[first - 1], ids[-1]) == (vocabulary.cls, vocabulary.sep, vocabulary.sep)
        for segment in (ids[1 : first - 1], ids[first:-1]):
            assert all(tuple(segment[i : i + 2]) in runs for i in range(len(segment)))


@given(case=documents_with_settings())
def test_special_tokens_are_never_masked_and_masks_ascend(engine, case):
    _, vocabulary, _ = case
    for example in made(case, engine):
        assert example.positions == sorted(set(example.positions))
        assert not {0, example.first_length - 1, len(example.ids) - 1} & set(example.positions)
        assert not {vocabulary.cls, vocabulary.sep} & set(example.labels)


@given(case=documents_with_settings())
def test_as_many_positions_are_masked_as_wanted(engine, case):
    documents, vocabulary, settings = case
    settings = settings.with_changes(masks=True)
    for example in made((documents, vocabulary, settings), engine):
        wanted, masked = compute_masks_wanted(settings.masking, len(example.ids)), len(example.positions)
        assert masked <= settings.max_predictions_per_seq
        if settings.whole_word_mask:
            assert masked <= wanted
        else:
            assert masked == min(wanted, len(candidates(example, vocabulary)))


@given(case=documents_with_settings())
def test_whole_words_are_masked_whole(engine, case):
    documents, vocabulary, settings = case
    whole = settings.with_changes(whole_word_mask=True)
    continues = vocabulary.continues_word
    for example in made((documents, vocabulary, whole), engine):
        ids, masked = unmasked(example), set(example.positions)
        places = candidates(example, vocabulary)
        for before, place in pairwise(places):
            if continues[ids[place]]:
                assert (before in masked) == (place in masked)


@given(case=documents_with_settings())
def test_replacements_are_tokens_of_the_vocabulary(engine, case):
    _, vocabulary, _ = case
    known = set(vocabulary.ids.values())
    for example in made(case, engine):
        assert set(example.ids) <= known


@given(settings=example_settings(dialect="graphcore"), shape=document_shapes, seed=st.integers(0, 1 << 30))
def test_graphcore_leaves_no_more_unmasked_ids_than_fit_beside_the_masks(engine, settings, shape, seed):
    vocabulary = small_vocabulary(settings.rules)
    documents = make_documents(shape, vocabulary, settings.rules, seed)
    room = settings.max_seq_length - settings.max_predictions_per_seq
    settings = settings.with_changes(whole_word_mask=False, masks=True)
    for example in made((documents, vocabulary, settings), engine):
        assert len(example.ids) - len(example.positions) <= max(room, 3)


@given(settings=example_settings(), lengths=st.lists(st.integers(1, 60), min_size=1, max_size=8))
def test_only_nvidia_says_that_text_of_the_own_document_follows(engine, settings, lengths):
    vocabulary = small_vocabulary(settings.rules)
    one_document = make_documents([lengths], vocabulary, settings.rules, 1)
    labels = {example.next_label for example in made((one_document, vocabulary, settings), engine)}
    if settings.dialect == "nvidia":
        assert labels == {0}
    elif len(lengths) == 1:
        assert labels == {1}


@given(settings=example_settings(), count=st.integers(3, 8), seed=st.integers(0, 1 << 30))
def test_documents_of_one_sentence_are_always_followed_by_random_text(engine, settings, count, seed):
    vocabulary = small_vocabulary(settings.rules)
    documents = make_documents([[5]] * count, vocabulary, settings.rules, seed)
    examples = made((documents, vocabulary, settings.with_changes(dialect="mlperf", remask=False)), engine)
    assert len(examples) == count * settings.dupe_factor
    assert {example.next_label for example in examples} == {1}


@given(case=documents_with_settings())
def test_a_seed_and_its_negative_make_the_same_examples(engine, case):
    documents, vocabulary, settings = case
    other = settings.with_changes(random_seed=-settings.random_seed)
    assert made(case, engine) == made((documents, vocabulary, other), engine)
