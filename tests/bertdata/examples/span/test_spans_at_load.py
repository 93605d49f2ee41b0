"""Spans drawn at load: the kernel equals the specification, in every container, by ids and by places."""

import pickle
from array import array
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import bertdata as face
from bertdata import _native
from bertdata.cli.main import main
from bertdata.config.dialects import DIALECTS
from bertdata.errors import SettingsError
from bertdata.examples.columns import convert_to_arrays
from bertdata.examples.dynamic_masking.masker import DrawnMasks, Draws
from bertdata.examples.masking.settings import MaskingSettings
from bertdata.examples.objectives import find_objective
from bertdata.examples.span.batch import SpanExample
from bertdata.examples.span.load_masker import SpanMasker, make_span_masker
from bertdata.examples.span.masking import draw_spans, find_boundaries, prepare_span_rules
from bertdata.examples.span.settings import ENDPOINTS, REPLACEMENTS, SpanSettings
from bertdata.examples.span.streams import BlockStream
from bertdata.records import Documents
from tests.support.strategies import small_vocabulary, tries

needs_kernels = pytest.mark.skipif(not _native.available(), reason="the kernels are not built")

VOCABULARY = small_vocabulary(DIALECTS["mlperf"])


@st.composite
def maskers(draw: st.DrawFn) -> dict[str, Any]:
    """Arguments of ``make_span_masker`` but the vocabulary and the engine."""
    mask, random = draw(st.sampled_from([(0.8, 0.1), (0.0, 1.0), (1.0, 0.0), (0.25, 0.25)]))
    masks = MaskingSettings(
        masked_lm_prob=0.15,
        max_predictions_per_seq=draw(st.integers(1, 40)),
        mask_share=mask,
        random_share=random,
        kept_share=1 - mask - random,
    )
    of_data = {
        "max_seq_length": 128,
        "longest_span": draw(st.integers(1, 6)),
        "replacement": draw(st.sampled_from(REPLACEMENTS)),
        "endpoints": draw(st.sampled_from(ENDPOINTS)),
    }
    return {"settings": masks, "of_data": of_data}


def masked(
    engine: Any, masker: dict[str, Any], lengths: list[int], seed: int, by_place: bool
) -> tuple[list[int], DrawnMasks, dict[str, list[Any]]]:
    """The ids, the masks and the boundaries of examples of random ids."""
    generator = np.random.default_rng(seed)
    sizes = np.array(lengths, np.int64)
    ids = generator.integers(5, VOCABULARY.size, int(sizes.sum())).astype(np.int32)
    words = generator.integers(0, 2, len(ids)).astype(np.uint8) if by_place else None
    draws = Draws(
        keys=generator.integers(0, 1 << 63, len(sizes)).astype(np.uint64),
        numbers=np.arange(len(sizes), dtype=np.uint64),
        rates=generator.choice([0.15, 0.5, 1.0], len(sizes)),
    )
    made = make_span_masker(VOCABULARY, masker["settings"], masker["of_data"], engine)
    found = made.mask(ids, np.cumsum(sizes) - sizes, sizes, draws, words)
    following = made.following(found, sizes)
    return ids.tolist(), found, {name: values.tolist() for name, values in following.items()}


@needs_kernels
@tries(2)
@given(
    maskers(),
    st.lists(st.integers(1, 120), min_size=1, max_size=6),
    st.integers(0, 1 << 30),
    st.booleans(),
)
def test_engines_draw_the_same_spans(masker, lengths, seed, by_place):
    native, python = (masked(engine, masker, lengths, seed, by_place) for engine in ("native", "python"))
    assert native[0] == python[0]
    assert native[2] == python[2]
    for name in ("positions", "labels", "counts"):
        assert getattr(native[1], name).tolist() == getattr(python[1], name).tolist()


@given(maskers(), st.lists(st.integers(1, 60), min_size=1, max_size=4), st.integers(0, 1 << 30))
def test_boundaries_are_those_of_the_runs_of_masks(masker, lengths, seed):
    _, found, following = masked("python", masker, lengths, seed, False)
    external = masker["of_data"]["endpoints"] == "external"
    for row, length in enumerate(lengths):
        places = found.positions[row, : found.counts[row]]
        runs = np.split(places, np.flatnonzero(np.diff(places) != 1) + 1) if len(places) else []
        spans = [(int(run[0]) - 1, int(run[-1])) for run in runs]
        expected = find_boundaries(spans, length - 2, are_external=external)
        count = following["span_ends"][row]
        pairs = zip(following["left_boundaries"][row], following["right_boundaries"][row], strict=True)
        assert [(left - 1, right - 1) for left, right in list(pairs)[:count]] == expected


def test_a_masker_is_pickled():
    masker = make_span_masker(VOCABULARY, MaskingSettings(), {}, "python")
    again = pickle.loads(pickle.dumps(masker))
    assert isinstance(again, SpanMasker)
    assert again.settings == masker.settings


def test_a_drawn_number_of_masks_is_refused():
    with pytest.raises(SettingsError, match="mask_counts is drawn, expected fixed: spans mask the share"):
        make_span_masker(VOCABULARY, MaskingSettings(mask_counts="drawn"), {})


FORMATS = ("tfrecord", "hdf5", "parquet")
OWN = ("--longest-span=3", "--endpoints=internal")


def create(corpus: list[Path], vocabulary: Path, output: Path, *flags: str) -> int:
    words = ["create", *map(str, corpus), "--output", str(output), "--vocab", str(vocabulary)]
    return main([*words, "--objective=span", "--max-seq-length=64", "--workers=1", *flags])


@pytest.mark.parametrize("format", FORMATS)
def test_spans_of_files_without_masks_are_drawn_anew_for_each_epoch(
    format, corpus, small_vocabulary_file, tmp_path
):
    """With the lengths and boundaries of the dataset's settings, by the streams that the twin has too."""
    flags = ("--no-masks", f"--format={format}", *OWN)
    assert create(corpus[:1], small_vocabulary_file, tmp_path / "plain", *flags) == 0
    plain = face.open_dataset(str(tmp_path / "plain"))
    assert not any(example.positions or example.left_boundaries for example in plain)
    first, second = ([*plain.masked(epoch=epoch, masked_lm_prob=0.3)] for epoch in (0, 1))
    assert first == [*plain.masked(masked_lm_prob=0.3)]
    assert first != second
    for example, original in zip(first, plain, strict=True):
        ids = list(example.ids)
        for position, label in zip(example.positions, example.labels, strict=True):
            ids[position] = label
        assert ids == original.ids
        runs = [p for p in example.positions if p - 1 not in example.positions]
        assert example.left_boundaries == runs
        inside = zip(example.left_boundaries, example.right_boundaries, strict=True)
        assert sum(right - left + 1 for left, right in inside) == len(example.positions)


def test_masks_that_files_have_do_not_count(corpus, small_vocabulary_file, tmp_path):
    for name, flags in (("plain", ("--no-masks",)), ("made", ())):
        assert create(corpus[:1], small_vocabulary_file, tmp_path / name, *flags) == 0
    plain, made = (face.open_dataset(str(tmp_path / name)) for name in ("plain", "made"))
    assert [*plain.masked()] == [*made.masked()]


def test_spans_at_load_are_those_of_the_specification():
    body = [5 + place % 25 for place in range(40)]
    masker = make_span_masker(VOCABULARY, MaskingSettings(masked_lm_prob=0.2), {}, None)
    ids = np.array([VOCABULARY.cls, *body, VOCABULARY.sep], np.int32)
    draws = Draws(keys=np.array([7], np.uint64), numbers=np.array([3], np.uint64), rates=np.array([0.2]))
    found = masker.mask(ids, np.array([0]), np.array([len(ids)]), draws)
    starts = [1 - VOCABULARY.continues_word[token] for token in body]
    rules = prepare_span_rules(SpanSettings(masked_lm_prob=0.2, max_predictions_per_seq=76))
    spans = draw_spans(starts, rules, BlockStream(7, 3))
    expected = [position + 1 for start, stop in spans for position in range(start, stop)]
    assert found.positions[0, : found.counts[0]].tolist() == expected
    assert len(expected) == 8


@pytest.mark.parametrize("engine", ["native", "python"])
def test_word_starts_are_kept_where_ids_do_not_tell_them(engine):
    """And spans at load are drawn by them: here each word has four ids."""
    untold = replace(VOCABULARY, continues_word=None)
    documents = Documents(
        ids=array("H", [20, 21, 22, 23] * 60),
        sentence_ends=array("I", [240]),
        document_ends=array("I", [1]),
        word_starts=bytes([1, 0, 0, 0] * 60),
    )
    settings = SpanSettings(objective="span_word_starts", max_seq_length=42, masks=False)
    made = find_objective("span_word_starts").make(documents, untold, settings, engine)
    batch = convert_to_arrays(made.batch(0, len(made)))
    assert len(batch) == 6
    for example in batch.examples():
        assert example.word_starts == [1, *[1, 0, 0, 0] * 10, 1]
    masker = make_span_masker(untold, MaskingSettings(masked_lm_prob=0.2), {"longest_span": 1}, engine)
    assert masker.needs_starts
    draws = Draws(keys=np.full(6, 5, np.uint64), numbers=np.arange(6, dtype=np.uint64), rates=np.full(6, 0.2))
    for example in masker.mask_batch(batch, draws).examples():
        assert len(example.positions) == 8
        assert [(place - 1) // 4 for place in example.positions[::4]] == [
            (place - 1) // 4 for place in example.positions[3::4]
        ]
        assert all((left % 4, right % 4) == (0, 1) for left, right in boundaries_of(example))


def boundaries_of(example: SpanExample) -> list[tuple[int, int]]:
    return list(zip(example.left_boundaries, example.right_boundaries, strict=True))
