"""Masked spans: the kernel equals the specification, and what holds of every block."""

from array import array
from itertools import accumulate, chain
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bertdata import _native
from bertdata.config.dialects import DIALECTS
from bertdata.examples.span.batch import SpanBatch, SpanExample
from bertdata.examples.span.blocks import cut_text_into_blocks
from bertdata.examples.span.make import make_spans
from bertdata.examples.span.settings import ENDPOINTS, REPLACEMENTS, SpanSettings
from bertdata.records import Documents, Vocabulary
from tests.support.strategies import large_vocabulary, parse_vocabulary, small_vocabulary, tries

needs_kernels = pytest.mark.skipif(not _native.available(), reason="the kernels are not built")

VOCABULARY = small_vocabulary(DIALECTS["mlperf"])

lengths = st.one_of(st.integers(0, 8), st.integers(0, 30), st.integers(1, 400))
shapes = st.lists(st.lists(lengths, max_size=8), max_size=6)
shares = st.sampled_from(
    [(0.8, 0.1, 0.1), (1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0), (0.5, 0.25, 0.25)]
)


@st.composite
def span_settings(draw: st.DrawFn) -> SpanSettings:
    """Any settings of masked spans; mostly short blocks."""
    length = draw(st.one_of(st.integers(5, 24), st.integers(5, 64), st.integers(5, 1024)))
    mask, random, kept = draw(shares)
    masks = draw(st.sampled_from([True, True, True, False]))
    shortest = draw(st.integers(1, 3))
    return SpanSettings(
        max_seq_length=length,
        max_predictions_per_seq=draw(st.one_of(st.just(0), st.integers(1, length))),
        dupe_factor=draw(st.integers(1, 3)) if masks else 1,
        as_original=draw(st.booleans()),
        random_seed=draw(st.one_of(st.integers(0, 100), st.integers(-(1 << 200), 1 << 200))),
        masked_lm_prob=draw(st.one_of(st.floats(1e-9, 1), st.sampled_from([0.15, 0.3, 1.0]))),
        mask_share=mask,
        random_share=random,
        kept_share=kept,
        shortest_span=shortest,
        longest_span=draw(st.integers(shortest, 5)),
        geometric_p=draw(st.sampled_from([0.2, 0.5, 1.0, 1e-9])),
        replacement=draw(st.sampled_from(REPLACEMENTS)),
        endpoints=draw(st.sampled_from(ENDPOINTS)),
        masks=masks,
    )


@st.composite
def texts(draw: st.DrawFn, vocabulary: Vocabulary) -> Documents:
    """Documents of any ids, special ones among them, some with word starts by place; parts may be empty."""
    shape, generator = draw(shapes), Random(draw(st.integers(0, 1 << 30)))
    sizes = list(chain.from_iterable(shape))
    total = sum(sizes)
    starts = bytes(generator.choices((0, 1), k=total)) if draw(st.booleans()) else None
    ids = generator.choices(vocabulary.replacements, k=total)
    return Documents(
        ids=array("I" if vocabulary.wide else "H", ids),
        sentence_ends=array("I", accumulate(sizes)),
        document_ends=array("I", accumulate(map(len, shape))),
        word_starts=starts,
    )


def columns(batch: SpanBatch) -> dict[str, tuple[int, list[int]]]:
    """Each column's item size and items."""
    views = {column.name: memoryview(getattr(batch, column.name)) for column in batch.columns()}
    return {name: (view.itemsize, view.tolist()) for name, view in views.items()}


def assert_engines_agree(documents: Documents, vocabulary: Vocabulary, settings: SpanSettings) -> None:
    native, python = (make_spans(documents, vocabulary, settings, engine) for engine in ("native", "python"))
    assert len(native) == len(python)
    assert (native.tokens, native.masked) == (python.tokens, python.masked)
    assert columns(native.batch(0, len(native))) == columns(python.batch(0, len(python)))


@needs_kernels
@tries(4)
@given(texts(VOCABULARY), span_settings())
def test_engines_make_the_same_spans(documents, settings):
    assert_engines_agree(documents, VOCABULARY, settings)


WIDE = parse_vocabulary(large_vocabulary(), "large", DIALECTS["mlperf"])


@needs_kernels
@given(texts(WIDE), span_settings())
def test_engines_make_the_same_spans_of_32_bit_ids(documents, settings):
    assert_engines_agree(documents, WIDE, settings)


@needs_kernels
@given(texts(VOCABULARY), span_settings(), st.integers(0, 40), st.integers(0, 60), st.integers(1, 7))
def test_engines_cut_the_same_batches(documents, settings, start, stop, step):
    native, python = (make_spans(documents, VOCABULARY, settings, engine) for engine in ("native", "python"))
    whole = list(python.batch(0, len(python)).examples())
    cut = python.batch(start, stop, step)
    assert columns(native.batch(start, stop, step)) == columns(cut)
    assert list(cut.examples()) == whole[start:stop:step]


# What holds of every block


def restored(example: SpanExample) -> list[int]:
    ids = list(example.ids)
    for position, label in zip(example.positions, example.labels, strict=True):
        ids[position] = label
    return ids


def made(documents: Documents, settings: SpanSettings) -> list[SpanExample]:
    source = make_spans(documents, VOCABULARY, settings, "python")
    return list(source.batch(0, len(source)).examples())


@given(texts(VOCABULARY), span_settings())
def test_the_blocks_of_a_pass_are_the_text_and_nothing_else(documents, settings):
    extents = list(cut_text_into_blocks(documents, settings.longest_body, as_original=settings.as_original))
    bodies = [list(documents.ids[start:end]) for start, end in extents]
    blocks = [[VOCABULARY.cls, *body, VOCABULARY.sep] for body in bodies]
    assert all(3 <= len(block) <= settings.max_seq_length for block in blocks)
    found = [restored(example) for example in made(documents, settings)]
    assert sorted(found) == sorted(blocks * settings.dupe_factor)
    if settings.as_original:
        assert found == blocks * settings.dupe_factor
    else:
        assert [token for body in bodies for token in body] == list(documents.ids)


@given(texts(VOCABULARY), span_settings())
def test_masks_are_as_many_as_wanted_and_lie_between_the_special_ids(documents, settings):
    for example in made(documents, settings):
        size = len(example.ids) - 2
        assert example.positions == sorted(set(example.positions))
        assert all(1 <= position <= size for position in example.positions)
        if settings.masks:
            wanted = max(1, -(-size * settings.masked_lm_prob // 1))
            assert len(example.positions) == min(wanted, settings.most_masks)


@given(texts(VOCABULARY), span_settings())
def test_every_id_between_two_boundaries_is_a_target(documents, settings):
    for example in made(documents, settings):
        masked = set(example.positions)
        found = set()
        for left, right in zip(example.left_boundaries, example.right_boundaries, strict=True):
            inside = range(left, right + 1)
            if settings.endpoints == "external":
                assert not masked & {left, right}
                assert 1 <= left <= right <= len(example.ids) - 2
                inside = range(left + 1, right)
            assert masked.issuperset(inside)
            found |= set(inside)
        for position in masked - found:  # a run of masks that touches an end of the block
            assert settings.endpoints == "external"
            to_start = masked.issuperset(range(1, position))
            to_end = masked.issuperset(range(position, len(example.ids) - 1))
            assert to_start or to_end
