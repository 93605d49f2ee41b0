"""ELECTRA's examples: the kernel equals the specification, and what holds of every example."""

from array import array
from itertools import accumulate, chain, pairwise
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bertdata import _native
from bertdata.config.dialects import DIALECTS
from bertdata.examples.electra.batch import ElectraBatch, ElectraExample
from bertdata.examples.electra.make import ElectraMaker
from bertdata.examples.electra.objective import ELECTRA
from bertdata.examples.electra.settings import ElectraSettings
from bertdata.records import Documents, MadeExamples, Vocabulary
from tests.support.strategies import large_vocabulary, parse_vocabulary, small_vocabulary, tries

needs_kernels = pytest.mark.skipif(not _native.available(), reason="the kernels are not built")

VOCABULARY = small_vocabulary(DIALECTS["mlperf"])
WIDE = parse_vocabulary(large_vocabulary(), "large", DIALECTS["mlperf"])

lengths = st.one_of(st.integers(0, 8), st.integers(0, 30), st.integers(1, 400))
shapes = st.lists(st.lists(lengths, max_size=8), max_size=6)
settings_of_any_length = st.builds(
    ElectraSettings,
    max_seq_length=st.one_of(st.integers(5, 24), st.integers(5, 64), st.integers(5, 1024)),
    random_seed=st.one_of(st.integers(0, 100), st.integers(-(1 << 200), 1 << 200)),
)


@st.composite
def texts(draw: st.DrawFn, vocabulary: Vocabulary) -> Documents:
    """Documents of any ids; sentences and documents may be empty."""
    shape, generator = draw(shapes), Random(draw(st.integers(0, 1 << 30)))
    sizes = list(chain.from_iterable(shape))
    ids = generator.choices(vocabulary.replacements, k=sum(sizes))
    return Documents(
        ids=array("I" if vocabulary.wide else "H", ids),
        sentence_ends=array("I", accumulate(sizes)),
        document_ends=array("I", accumulate(map(len, shape))),
    )


def columns(batch: ElectraBatch) -> dict[str, tuple[int, list[int]]]:
    """Each column's item size and items."""
    views = {column.name: memoryview(getattr(batch, column.name)) for column in batch.columns()}
    return {name: (view.itemsize, view.tolist()) for name, view in views.items()}


def assert_same(native: MadeExamples, python: MadeExamples) -> None:
    assert (len(native), native.tokens, native.masked) == (len(python), python.tokens, 0)
    assert columns(native.batch(0, len(native))) == columns(python.batch(0, len(python)))


@needs_kernels
@tries(4)
@given(texts(VOCABULARY), settings_of_any_length)
def test_engines_make_the_same_examples(documents, settings):
    assert_same(*(ELECTRA.make(documents, VOCABULARY, settings, engine) for engine in ("native", "python")))


@needs_kernels
@given(texts(WIDE), settings_of_any_length)
def test_engines_make_the_same_examples_of_32_bit_ids(documents, settings):
    assert_same(*(ELECTRA.make(documents, WIDE, settings, engine) for engine in ("native", "python")))


@needs_kernels
@given(st.lists(texts(VOCABULARY), min_size=1, max_size=4), settings_of_any_length)
def test_engines_go_on_alike_from_input_to_input(inputs, settings):
    native, python = (
        ElectraMaker(VOCABULARY, settings, engine, len(inputs)) for engine in ("native", "python")
    )
    assert sorted(native.order) == list(range(len(inputs)))
    assert native.order == python.order
    for documents in inputs:
        assert_same(native.make(documents), python.make(documents))


@needs_kernels
@given(texts(VOCABULARY), settings_of_any_length, st.integers(0, 40), st.integers(0, 60), st.integers(1, 7))
def test_engines_cut_the_same_batches(documents, settings, start, stop, step):
    native, python = (
        ELECTRA.make(documents, VOCABULARY, settings, engine) for engine in ("native", "python")
    )
    cut = python.batch(start, stop, step)
    assert columns(native.batch(start, stop, step)) == columns(cut)
    assert list(cut.examples()) == list(python.batch(0, len(python)).examples())[start:stop:step]


def made(documents: Documents, settings: ElectraSettings) -> list[ElectraExample]:
    source = ELECTRA.make(documents, VOCABULARY, settings, "python")
    return list(source.batch(0, len(source)).examples())


@given(texts(VOCABULARY), settings_of_any_length)
def test_an_example_is_one_segment_or_two_and_no_longer_than_asked(documents, settings):
    for example in made(documents, settings):
        ids, first = example.ids, example.first_length
        assert 3 <= first <= len(ids) <= settings.max_seq_length
        assert (ids[0], ids[first - 1], ids[-1]) == (VOCABULARY.cls, VOCABULARY.sep, VOCABULARY.sep)
        assert len(ids) - first != 1  # a second segment has text


@given(texts(VOCABULARY))
def test_the_first_example_holds_its_document_whole(documents):
    """No document is as long as its target. Sentences may change places between the segments."""
    examples = made(documents, ElectraSettings(max_seq_length=65_535, random_seed=11))
    ends = [0, *documents.sentence_ends]
    starts = [0, *(ends[number] for number in documents.document_ends)]
    bodies = [sorted(documents.ids[start:end]) for start, end in pairwise(starts)]
    assert len(examples) >= sum(map(bool, bodies))
    for example in examples[:1]:
        inner = example.ids[1 : example.first_length - 1] + example.ids[example.first_length : -1]
        assert sorted(inner) == next(filter(None, bodies))
